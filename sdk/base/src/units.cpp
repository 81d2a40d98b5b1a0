#include <troupe/base/units.hpp>

#include <array>
#include <cstdio>

#include <troupe/base/text.hpp>

namespace troupe {

std::string format_bytes(std::int64_t bytes) {
  constexpr std::array kNames = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes > -1024 && bytes < 1024) return text(bytes, " bytes");
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while ((value >= 1024 || value <= -1024) && unit + 1 < kNames.size()) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 32> number{};
  std::snprintf(number.data(), number.size(), "%.2f", value);
  return text(number.data(), " ", kNames[unit], " (", bytes, " bytes)");
}

}  // namespace troupe
