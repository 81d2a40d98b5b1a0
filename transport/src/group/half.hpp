#pragma once

#include <bit>
#include <cstdint>

namespace troupe::transport {

/// The upper half of an fp32.
struct Bf16 {
  std::uint16_t bits;
};

/// IEEE binary16.
struct F16 {
  std::uint16_t bits;
};

[[nodiscard]] inline float widen(Bf16 value) { return std::bit_cast<float>(std::uint32_t{value.bits} << 16); }

/// To nearest even; a NaN stays a NaN.
inline void narrow(float value, Bf16& out) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  const std::uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  out.bits = static_cast<std::uint16_t>(nan ? (bits >> 16) | 0x40u : rounded >> 16);
}

[[nodiscard]] inline float widen(F16 value) {
  const std::uint32_t sign = std::uint32_t{value.bits & 0x8000u} << 16;
  const std::uint32_t magnitude = value.bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  // Moves the exponent from bias 15 to bias 127 by a multiplication, which is right for subnormals too.
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | sign);
}

/// To nearest even; too large becomes infinity, a NaN stays a NaN.
inline void narrow(float value, F16& out) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  std::uint32_t half = 0;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  } else if (magnitude >= 0x477ff000u) {  // 65520 and more round to infinity
    half = 0x7c00u;
  } else if (magnitude < 0x38800000u) {  // below 2^-14: adding 0.5 leaves the subnormal's bits at the end
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - std::bit_cast<std::uint32_t>(0.5f);
  } else {
    half = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  }
  out.bits = static_cast<std::uint16_t>(sign | half);
}

}  // namespace troupe::transport
