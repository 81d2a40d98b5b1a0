#include <troupe/torch/tensor.hpp>

#include <array>
#include <utility>

#include <ATen/ATen.h>

#include <troupe/base/text.hpp>

namespace troupe {
namespace {

using transport::DType;

constexpr std::array<std::pair<c10::ScalarType, DType>, 17> kTypes{{
    {c10::ScalarType::Byte, DType::kU8}, {c10::ScalarType::Char, DType::kI8}, {c10::ScalarType::Short, DType::kI16},
    {c10::ScalarType::Int, DType::kI32}, {c10::ScalarType::Long, DType::kI64}, {c10::ScalarType::UInt16, DType::kU16},
    {c10::ScalarType::UInt32, DType::kU32}, {c10::ScalarType::UInt64, DType::kU64}, {c10::ScalarType::Bool, DType::kBool},
    {c10::ScalarType::Half, DType::kF16}, {c10::ScalarType::BFloat16, DType::kBf16}, {c10::ScalarType::Float, DType::kF32},
    {c10::ScalarType::Double, DType::kF64}, {c10::ScalarType::Float8_e4m3fn, DType::kF8E4M3}, {c10::ScalarType::Float8_e5m2, DType::kF8E5M2},
    {c10::ScalarType::ComplexFloat, DType::kC64}, {c10::ScalarType::ComplexDouble, DType::kC128},
}};

}  // namespace

Result<DType> to_transport(c10::ScalarType dtype) {
  for (const auto& [torch, wire] : kTypes) {
    if (torch == dtype) return wire;
  }
  return fail(Errc::kInvalidArgument, text("dtype ", c10::toString(dtype), " has no wire form; view it as bytes"));
}

c10::ScalarType to_torch(DType dtype) {
  for (const auto& [torch, wire] : kTypes) {
    if (wire == dtype) return torch;
  }
  return c10::ScalarType::Undefined;
}

Result<transport::TensorDesc> describe(const at::Tensor& tensor) {
  if (!tensor.defined()) return fail(Errc::kInvalidArgument, "an undefined tensor has no description");
  auto dtype = to_transport(tensor.scalar_type());
  if (!dtype) return fail(std::move(dtype.error()));
  transport::TensorDesc out;
  out.dtype = *dtype;
  out.shape = tensor.sizes().vec();
  if (!tensor.is_contiguous()) out.strides = tensor.strides().vec();
  if (tensor.is_cuda()) out.device = {transport::MemoryKind::kCuda, tensor.get_device()};
  if (tensor.is_meta()) out.device = {transport::MemoryKind::kMeta, 0};
  return out;
}

transport::Tensor lend(const at::Tensor& tensor) {
  transport::Tensor out;
  out.desc = or_throw(describe(tensor));
  out.data = tensor.is_meta() ? nullptr : tensor.data_ptr();
  out.keep = std::make_shared<at::Tensor>(tensor);
  return out;
}

at::Tensor adopt(const transport::Tensor& tensor) {
  const auto options = at::TensorOptions().dtype(to_torch(tensor.desc.dtype));
  auto keep = tensor.keep;
  if (tensor.desc.strides.empty()) return at::from_blob(tensor.data, tensor.desc.shape, [keep](void*) {}, options);
  return at::from_blob(tensor.data, tensor.desc.shape, tensor.desc.strides, [keep](void*) {}, options);
}

bool is_aligned(const at::Tensor& tensor) {
  return tensor.is_meta() || tensor.numel() == 0 || reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr()) % 64 == 0;
}

}  // namespace troupe
