#include "markup.hpp"

#include <array>
#include <cmath>
#include <cstdio>

namespace troupe::detail {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";   // U+FFFD

/// Bytes of the UTF-8 sequence at the front; 0: it is none (also overlong, surrogates, past U+10FFFF).
/// Source: Unicode 15, table 3-7.
std::size_t sequence_length(std::string_view text) {
  const auto at = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto follows = [&](std::size_t i) { return (at(i) & 0xc0U) == 0x80U; };
  const unsigned first = at(0), second = at(1);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const bool is_allowed = (first != 0xe0 || second >= 0xa0) && (first != 0xed || second < 0xa0);
    return is_allowed && follows(1) && follows(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool is_allowed = (first != 0xf0 || second >= 0x90) && (first != 0xf4 || second < 0x90);
    return is_allowed && follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

std::string_view entity(char c) {
  switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return {};
  }
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    const auto first = static_cast<unsigned char>(text.front());
    const bool is_control = length == 1 && (first == 0x7f || (first < 0x20 && first != '\t' && first != '\n' && first != '\r'));
    if (length == 0 || is_control) {
      out += kReplacement;
    } else if (const auto named = entity(text.front()); !named.empty()) {
      out += named;
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t count = bytes.size() - at < 3 ? bytes.size() - at : 3;
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i) group = group << 8 | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i) out += i <= count ? kDigits[group >> (18 - 6 * i) & 63] : '=';
  }
  return out;
}

std::string bytes_text(std::int64_t bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (std::abs(value) >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  char out[48];
  std::snprintf(out, sizeof out, unit == 0 || std::abs(value) >= 100 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return out;
}

std::string count_text(std::int64_t count) {
  std::string out = std::to_string(count);
  const std::size_t front = count < 0 ? 1 : 0;
  for (std::size_t at = out.size(); at > front + 3;) out.insert(at -= 3, 1, ',');
  return out;
}

std::string number_text(double number) {
  if (std::abs(number) >= 1000 && std::abs(number) < 1e9) return count_text(std::llround(number));
  char out[32];
  std::snprintf(out, sizeof out, "%.4g", number);
  return out;
}

}  // namespace troupe::detail
