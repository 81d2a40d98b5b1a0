#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace qwen_vl {

/// What the split patterns ask of a character: \p{L}, \p{N}, \s, or none of them.
enum class CharClass : std::uint8_t { kOther, kLetter, kNumber, kSpace };

/// A character of well-formed UTF-8: its class and its length in bytes.
struct Glyph {
  CharClass kind;
  std::uint8_t length;
};

/// The class of any code point, after Unicode 16: what the regular expressions of Hugging Face's tokenizers (Oniguruma) know.
/// Thread: any.
[[nodiscard]] CharClass char_class(char32_t code);

/// The classes of ASCII.
inline constexpr std::array<CharClass, 128> kAsciiClasses = [] {
  std::array<CharClass, 128> classes{};
  for (const char c : {'\t', '\n', '\v', '\f', '\r', ' '}) classes[static_cast<std::size_t>(c)] = CharClass::kSpace;
  for (std::size_t c = '0'; c <= '9'; ++c) classes[c] = CharClass::kNumber;
  for (std::size_t c = 'a'; c <= 'z'; ++c) classes[c] = classes[c - 32] = CharClass::kLetter;
  return classes;
}();

/// As glyph_at(), for a character outside ASCII.
[[nodiscard]] Glyph long_glyph_at(const char* at);

/// The character that starts at `at`, which must be the start of one in well-formed UTF-8.
[[nodiscard]] inline Glyph glyph_at(const char* at) {
  const auto first = static_cast<unsigned char>(*at);
  return first < 0x80 ? Glyph{kAsciiClasses[first], 1} : long_glyph_at(at);
}

/// True when `bytes` is well-formed UTF-8.
[[nodiscard]] bool is_utf8(std::string_view bytes);

/// `bytes` as well-formed UTF-8: each maximal ill-formed stretch becomes one U+FFFD, as Python's errors="replace" does
/// (Unicode 15, section 3.9, "U+FFFD substitution of maximal subparts").
[[nodiscard]] std::string repair_utf8(std::string_view bytes);

/// Normalization form C of well-formed UTF-8, over the characters of Unicode 9; younger ones stay as they are. That is what
/// Hugging Face's tokenizers do, and it differs from today's NFC only beside combining marks younger than Unicode 9.
/// Source: Unicode Standard Annex 15; measured against PyPI tokenizers 0.23 over all code points.
[[nodiscard]] std::string to_nfc(std::string_view text);

/// True when to_nfc(text) is surely `text`: no character from U+0300 on. May be false for normalized text.
[[nodiscard]] bool is_plainly_nfc(std::string_view text);

}  // namespace qwen_vl
