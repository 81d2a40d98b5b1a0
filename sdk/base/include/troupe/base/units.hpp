#pragma once

#include <cstdint>
#include <string>

namespace troupe {
inline namespace literals {

constexpr std::int64_t operator""_KiB(unsigned long long n) { return static_cast<std::int64_t>(n << 10); }
constexpr std::int64_t operator""_MiB(unsigned long long n) { return static_cast<std::int64_t>(n << 20); }
constexpr std::int64_t operator""_GiB(unsigned long long n) { return static_cast<std::int64_t>(n << 30); }

}  // namespace literals

/// "1.50 GiB (1610612736 bytes)": for people, and exact.
[[nodiscard]] std::string format_bytes(std::int64_t bytes);

}  // namespace troupe
