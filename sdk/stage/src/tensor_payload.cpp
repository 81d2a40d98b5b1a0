#include <troupe/stage/tensor_payload.hpp>

#include <cstring>

namespace troupe {

std::int64_t Payload<at::Tensor>::bytes(const at::Tensor& value) {
  return value.defined() ? static_cast<std::int64_t>(value.nbytes()) : 0;
}

std::uint64_t Payload<at::Tensor>::fingerprint(const at::Tensor& value) {
  if (!value.defined()) return 0;
  std::uint64_t hash = value.is_inference() ? 0 : static_cast<std::uint64_t>(value._version());
  for (const auto size : value.sizes()) hash = detail::mix(hash, static_cast<std::uint64_t>(size));
  if (!value.device().is_cpu() || !value.is_contiguous() || value.nbytes() == 0) return hash;
  // The version counter misses writes through raw pointers and .data: sample 64 bytes as well.
  const auto* bytes = static_cast<const unsigned char*>(value.const_data_ptr());
  const std::size_t step = value.nbytes() / 64 + 1;
  for (std::size_t at = 0; at < value.nbytes(); at += step) hash = detail::mix(hash, bytes[at]);
  return hash;
}

}  // namespace troupe
