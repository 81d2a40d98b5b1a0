#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include <c10/core/ScalarType.h>

#include "dtypes.hpp"

namespace troupe::detail {

/// LibTorch's types in the order of kStoredTypes.
inline constexpr c10::ScalarType kScalarTypes[] = {c10::ScalarType::Double, c10::ScalarType::Float, c10::ScalarType::Half, c10::ScalarType::BFloat16,
                                                   c10::ScalarType::Float8_e4m3fn, c10::ScalarType::Float8_e5m2, c10::ScalarType::Long, c10::ScalarType::Int,
                                                   c10::ScalarType::Short, c10::ScalarType::Char, c10::ScalarType::Byte, c10::ScalarType::Bool,
                                                   c10::ScalarType::UInt16, c10::ScalarType::UInt32, c10::ScalarType::UInt64,
                                                   c10::ScalarType::Float8_e8m0fnu, c10::ScalarType::ComplexFloat};
static_assert(std::size(kScalarTypes) == std::size(kStoredTypes));

/// LibTorch's type of a name of the format.
inline std::optional<c10::ScalarType> scalar_type(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kStoredTypes); ++i) {
    if (kStoredTypes[i].name == name) return kScalarTypes[i];
  }
  return std::nullopt;
}

/// The format's name of a type.
inline std::optional<std::string_view> stored_name(c10::ScalarType type) {
  for (std::size_t i = 0; i < std::size(kStoredTypes); ++i) {
    if (kScalarTypes[i] == type) return kStoredTypes[i].name;
  }
  return std::nullopt;
}

}  // namespace troupe::detail
