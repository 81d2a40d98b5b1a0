#include "tensors.hpp"

#include <cstring>
#include <thread>
#include <utility>

namespace troupe::transport::test {
namespace {

void read(const Tensor& tensor, std::size_t dim, const std::byte* at, Bytes& out) {
  const auto element = static_cast<std::size_t>(size_of(tensor.desc.dtype));
  if (dim == tensor.desc.shape.size()) {
    out.insert(out.end(), at, at + element);
    return;
  }
  std::int64_t stride = 1;
  for (std::size_t d = dim + 1; d < tensor.desc.shape.size(); ++d) stride *= tensor.desc.shape[d];
  if (!tensor.desc.strides.empty()) stride = tensor.desc.strides[dim];
  for (std::int64_t i = 0; i < tensor.desc.shape[dim]; ++i) {
    read(tensor, dim + 1, at + i * stride * static_cast<std::int64_t>(element), out);
  }
}

}  // namespace

Tensor make_tensor(DType dtype, Shape shape) {
  Tensor tensor{nullptr, {dtype, std::move(shape)}};
  // As unique memory of its exact size, so that AddressSanitizer sees a byte too many.
  const auto bytes = static_cast<std::size_t>(tensor.desc.bytes());
  std::shared_ptr<std::byte> memory(new std::byte[bytes == 0 ? 1 : bytes](), std::default_delete<std::byte[]>());
  tensor.data = memory.get();
  tensor.keep = std::move(memory);
  return tensor;
}

Tensor make_pattern(DType dtype, Shape shape, int seed) {
  Tensor tensor = make_tensor(dtype, std::move(shape));
  std::byte* at = bytes_of(tensor);
  const std::int64_t bytes = tensor.desc.bytes();
  for (std::int64_t i = 0; i < bytes; ++i) at[i] = static_cast<std::byte>((i * 7 + i / 251 + seed * 31) & 0xff);
  return tensor;
}

Tensor view(const Tensor& base, Shape shape, Shape strides, std::int64_t offset) {
  return {bytes_of(base) + offset * size_of(base.desc.dtype), {base.desc.dtype, std::move(shape), std::move(strides)}, base.keep};
}

Bytes packed(const Tensor& tensor) {
  Bytes out;
  out.reserve(static_cast<std::size_t>(tensor.desc.bytes()));
  if (tensor.desc.elements() == 0) return out;
  if (tensor.desc.strides.empty()) {
    const std::byte* at = bytes_of(tensor);
    out.assign(at, at + tensor.desc.bytes());
  } else {
    read(tensor, 0, bytes_of(tensor), out);
  }
  return out;
}

std::byte* bytes_of(const Tensor& tensor) { return static_cast<std::byte*>(tensor.data); }

void on_threads(int count, const std::function<void(int)>& fn) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&fn, i] { fn(i); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace troupe::transport::test
