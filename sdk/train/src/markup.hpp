#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::detail {

/// As text of HTML or XML, in an attribute too: reserved characters escaped; what is no UTF-8, and the control characters
/// that XML does not allow, replaced by U+FFFD.
[[nodiscard]] std::string escaped(std::string_view text);

/// RFC 4648, with padding.
[[nodiscard]] std::string base64(std::string_view bytes);

/// "1.5 GiB", "640 B".
[[nodiscard]] std::string bytes_text(std::int64_t bytes);

/// "1,234,567".
[[nodiscard]] std::string count_text(std::int64_t count);

/// At most four significant digits, no trailing zeros: "0.025", "1,200", "3e-05".
[[nodiscard]] std::string number_text(double number);

}  // namespace troupe::detail
