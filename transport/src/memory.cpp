#include "memory.hpp"

#include <new>

#include <troupe/base/text.hpp>
#include <troupe/base/units.hpp>

namespace troupe::transport {

std::int64_t size_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::kU8:
    case DType::kI8:
    case DType::kBool:
    case DType::kF8E4M3:
    case DType::kF8E5M2: return 1;
    case DType::kI16:
    case DType::kU16:
    case DType::kF16:
    case DType::kBf16: return 2;
    case DType::kI32:
    case DType::kU32:
    case DType::kF32: return 4;
    case DType::kI64:
    case DType::kU64:
    case DType::kF64:
    case DType::kC64: return 8;
    case DType::kC128: return 16;
  }
  return 0;
}

std::string_view to_string(DType dtype) noexcept {
  switch (dtype) {
    case DType::kU8: return "u8";
    case DType::kI8: return "i8";
    case DType::kI16: return "i16";
    case DType::kI32: return "i32";
    case DType::kI64: return "i64";
    case DType::kU16: return "u16";
    case DType::kU32: return "u32";
    case DType::kU64: return "u64";
    case DType::kBool: return "bool";
    case DType::kF16: return "f16";
    case DType::kBf16: return "bf16";
    case DType::kF32: return "f32";
    case DType::kF64: return "f64";
    case DType::kF8E4M3: return "f8e4m3";
    case DType::kF8E5M2: return "f8e5m2";
    case DType::kC64: return "c64";
    case DType::kC128: return "c128";
  }
  return "unknown dtype";
}

std::int64_t TensorDesc::elements() const noexcept {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

bool TensorDesc::contiguous() const noexcept {
  if (strides.empty() || elements() == 0) return true;
  std::int64_t expected = 1;
  for (std::size_t dim = shape.size(); dim-- > 0;) {
    if (shape[dim] != 1 && strides[dim] != expected) return false;
    expected *= shape[dim];
  }
  return true;
}

std::string TensorDesc::to_string() const {
  std::string out = text(transport::to_string(dtype), " [");
  for (std::size_t dim = 0; dim < shape.size(); ++dim) out += text(dim ? ", " : "", shape[dim]);
  return out + "]";
}

Result<void> validate(const Tensor& tensor) {
  const TensorDesc& desc = tensor.desc;
  const auto refuse = [&](const auto&... why) {
    return fail(Errc::kInvalidArgument, text("tensor ", desc.to_string(), ": ", why...));
  };
  if (size_of(desc.dtype) == 0) return refuse("dtype ", static_cast<int>(desc.dtype), " is not one of DType");
  if (desc.shape.size() > 8) return refuse(desc.shape.size(), " dims, at most 8 can be moved; reshape it");
  if (!desc.strides.empty() && desc.strides.size() != desc.shape.size()) {
    return refuse(desc.strides.size(), " strides for ", desc.shape.size(), " dims; give one per dim or none");
  }
  for (const std::int64_t size : desc.shape) {
    if (size < 0) return refuse("size ", size, " of a dim is negative");
  }
  if (tensor.data == nullptr && desc.elements() > 0) return refuse("no memory for ", desc.bytes(), " bytes");
  return {};
}

Result<void> validate_host(const Tensor& tensor) {
  if (tensor.desc.device.kind == MemoryKind::kMeta) {
    return fail(Errc::kInvalidArgument, text("tensor ", tensor.desc.to_string(), ": a meta tensor has no bytes to move"));
  }
  if (tensor.desc.device.kind == MemoryKind::kCuda) {
    return fail(Errc::kUnavailable, text("tensor ", tensor.desc.to_string(), " is on cuda:", tensor.desc.device.index,
                                         ": this backend moves host memory only; build with TROUPE_WITH_CUDA"));
  }
  return validate(tensor);
}

Result<std::shared_ptr<std::byte>> allocate(std::int64_t bytes) {
  constexpr std::align_val_t kAlign{static_cast<std::size_t>(kAlignment)};
  void* memory = ::operator new(static_cast<std::size_t>(bytes), kAlign, std::nothrow);
  if (memory == nullptr) {
    return fail(Errc::kOutOfMemory, text("the system refused ", format_bytes(bytes), " of scratch for a transfer"));
  }
  return std::shared_ptr<std::byte>(static_cast<std::byte*>(memory),
                                    [](std::byte* p) { ::operator delete(p, kAlign); });
}

}  // namespace troupe::transport
