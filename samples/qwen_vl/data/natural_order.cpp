#include "natural_order.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace qwen_vl {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Cuts the number at the head of `rest`, without its leading zeros.
std::string_view take_number(std::string_view& rest) {
  const std::size_t length = std::min(rest.find_first_not_of("0123456789"), rest.size());
  std::string_view number = rest.substr(0, length);
  rest.remove_prefix(length);
  number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
  return number;
}

}  // namespace

bool in_natural_order(std::string_view a, std::string_view b) {
  std::string_view left = a, right = b;
  while (!left.empty() && !right.empty()) {
    if (is_digit(left.front()) && is_digit(right.front())) {
      const std::string_view one = take_number(left), other = take_number(right);
      if (one.size() != other.size()) return one.size() < other.size();
      if (one != other) return one < other;
      continue;
    }
    if (left.front() != right.front()) return left.front() < right.front();
    left.remove_prefix(1);
    right.remove_prefix(1);
  }
  if (left.empty() != right.empty()) return left.empty();
  return a < b;   // "01" and "1"
}

bool is_picture_extension(std::string_view extension) {
  if (extension.starts_with('.')) extension.remove_prefix(1);
  std::string lower(extension);
  std::ranges::transform(lower, lower.begin(), [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  constexpr std::array<std::string_view, 8> kKnown = {"png", "jpg", "jpeg", "bmp", "gif", "tga", "ppm", "pgm"};
  return std::ranges::find(kKnown, lower) != kKnown.end();
}

}  // namespace qwen_vl
