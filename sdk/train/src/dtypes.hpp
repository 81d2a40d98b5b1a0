#pragma once

#include <cstdint>
#include <string_view>

namespace troupe::detail {

/// A dtype of the format; the order is that of kScalarTypes in scalar_types.hpp.
struct StoredType {
  std::string_view name;
  std::int64_t bytes;
};
inline constexpr StoredType kStoredTypes[] = {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"I64", 8}, {"I32", 4},
                                              {"I16", 2}, {"I8", 1},  {"U8", 1},  {"BOOL", 1}, {"U16", 2},     {"U32", 4},     {"U64", 8},
                                              {"F8_E8M0", 1}, {"C64", 8}};

}  // namespace troupe::detail
