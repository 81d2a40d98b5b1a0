#pragma once

#include <sstream>
#include <string>

namespace troupe {

/// Concatenates its arguments as an ostream prints them: text("rank ", 3, " of ", 4).
template <class... Parts>
[[nodiscard]] std::string text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

}  // namespace troupe
