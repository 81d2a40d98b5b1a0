#include <algorithm>
#include <array>
#include <cstring>

#include <troupe/base/text.hpp>
#include <troupe/transport/memory.hpp>

namespace troupe::transport {
namespace {

/// Both sides of a copy, dims that step together merged, so that a view with long rows is few memcpys.
struct Walk {
  struct Dim {
    std::int64_t size, target_stride, source_stride;  // bytes
  };
  std::array<Dim, 9> dims{};  // outermost first
  std::size_t count = 0;
};

std::int64_t stride_bytes(const TensorDesc& desc, std::size_t dim, std::int64_t packed) {
  return desc.strides.empty() ? packed : desc.strides[dim] * size_of(desc.dtype);
}

Walk plan(const TensorDesc& target, const TensorDesc& source) {
  std::array<Walk::Dim, 9> inner_first{};
  std::size_t count = 0;
  std::int64_t packed = size_of(target.dtype);
  for (std::size_t dim = target.shape.size(); dim-- > 0;) {
    const std::int64_t size = target.shape[dim];
    const Walk::Dim step{size, stride_bytes(target, dim, packed), stride_bytes(source, dim, packed)};
    packed *= size;
    if (size == 1) continue;
    if (count > 0) {
      Walk::Dim& below = inner_first[count - 1];
      if (step.target_stride == below.size * below.target_stride && step.source_stride == below.size * below.source_stride) {
        below.size *= size;
        continue;
      }
    }
    inner_first[count++] = step;
  }
  Walk walk;
  walk.count = count;
  std::reverse_copy(inner_first.begin(), inner_first.begin() + static_cast<std::ptrdiff_t>(count), walk.dims.begin());
  return walk;
}

template <std::size_t kSize>
void copy_row(std::byte* target, const std::byte* source, const Walk::Dim& dim) {
  for (std::int64_t i = 0; i < dim.size; ++i) {
    std::memcpy(target + i * dim.target_stride, source + i * dim.source_stride, kSize);
  }
}

using CopyRow = void (*)(std::byte*, const std::byte*, const Walk::Dim&);

CopyRow row_copier(std::int64_t element) {
  switch (element) {
    case 1: return copy_row<1>;
    case 2: return copy_row<2>;
    case 4: return copy_row<4>;
    case 8: return copy_row<8>;
    default: return copy_row<16>;
  }
}

/// Copies `row` bytes, or a strided row, at every place of the outer dims.
template <class Copy>
void walk_outer(std::byte* target, const std::byte* source, const Walk& walk, std::size_t outer, Copy copy) {
  std::array<std::int64_t, 9> at{};
  for (;;) {
    copy(target, source);
    std::size_t dim = outer;
    for (; dim-- > 0;) {
      const Walk::Dim& d = walk.dims[dim];
      target += d.target_stride;
      source += d.source_stride;
      if (++at[dim] < d.size) break;
      target -= d.size * d.target_stride;
      source -= d.size * d.source_stride;
      at[dim] = 0;
    }
    if (dim == static_cast<std::size_t>(-1)) return;
  }
}

void count(std::int64_t bytes, TransferCounters& counters) {
  counters.copied_bytes.fetch_add(bytes, std::memory_order_relaxed);
  counters.copies.fetch_add(1, std::memory_order_relaxed);
}

void copy_strided(std::byte* target, const std::byte* source, const Walk& walk, std::int64_t element) {
  const std::size_t inner = walk.count - 1;
  const Walk::Dim& row = walk.dims[inner];
  if (row.target_stride == element && row.source_stride == element) {
    const auto bytes = static_cast<std::size_t>(row.size * element);
    walk_outer(target, source, walk, inner,
               [bytes](std::byte* t, const std::byte* s) { std::memcpy(t, s, bytes); });
  } else {
    const CopyRow copy = row_copier(element);
    walk_outer(target, source, walk, inner, [&](std::byte* t, const std::byte* s) { copy(t, s, row); });
  }
}

}  // namespace

void copy_bytes(void* target, const void* source, std::int64_t bytes, TransferCounters& counters) {
  if (bytes == 0 || target == source) return;
  std::memcpy(target, source, static_cast<std::size_t>(bytes));
  count(bytes, counters);
}

// L1, L2: a strided side is walked by its strides, never sent as flat bytes.
Result<void> copy_tensor(const Tensor& target, const Tensor& source, TransferCounters& counters) {
  if (target.desc.dtype != source.desc.dtype || target.desc.shape != source.desc.shape) {
    return fail(Errc::kMismatch, text("a copy needs equal dtype and shape: the target is ", target.desc.to_string(),
                                      ", the source is ", source.desc.to_string()));
  }
  const std::int64_t bytes = source.desc.bytes();
  if (target.desc.contiguous() && source.desc.contiguous()) {
    copy_bytes(target.data, source.data, bytes, counters);
  } else if (bytes > 0) {
    copy_strided(static_cast<std::byte*>(target.data), static_cast<const std::byte*>(source.data),
                 plan(target.desc, source.desc), size_of(source.desc.dtype));
    count(bytes, counters);
  }
  return {};
}

}  // namespace troupe::transport
