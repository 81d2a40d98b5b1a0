#include "byte_level.hpp"

namespace qwen_vl {
namespace {

constexpr std::size_t kLast = 256 + 67;  // 68 bytes are not printable: they get U+0100 .. U+0143

struct Alphabet {
  std::array<std::uint8_t, 256> order{};
  std::array<std::uint16_t, 256> code{};          ///< byte -> code point
  std::array<std::int16_t, kLast + 1> byte{};     ///< code point -> byte, -1 for none
};

constexpr bool printable(std::size_t byte) { return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174; }

constexpr Alphabet make_alphabet() {
  Alphabet out;
  std::size_t next = 0;
  for (auto& byte : out.byte) byte = -1;
  for (const bool wanted : {true, false}) {
    std::size_t shifted = 256;
    for (std::size_t byte = 0; byte < 256; ++byte) {
      if (printable(byte) != wanted) continue;
      out.order[next++] = static_cast<std::uint8_t>(byte);
      const std::size_t code = wanted ? byte : shifted++;
      out.code[byte] = static_cast<std::uint16_t>(code);
      out.byte[code] = static_cast<std::int16_t>(byte);
    }
  }
  return out;
}
constexpr Alphabet kAlphabet = make_alphabet();

constexpr std::array<std::int8_t, 256> base64_values() {
  std::array<std::int8_t, 256> values{};
  for (auto& value : values) value = -1;
  std::int8_t next = 0;
  for (const char c : std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")) values[static_cast<std::uint8_t>(c)] = next++;
  return values;
}
constexpr auto kBase64 = base64_values();

}  // namespace

const std::array<std::uint8_t, 256>& byte_order() { return kAlphabet.order; }

std::string to_byte_level(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() + bytes.size() / 4);
  for (const char c : bytes) {
    const unsigned code = kAlphabet.code[static_cast<std::uint8_t>(c)];
    if (code < 0x80) {
      out += static_cast<char>(code);
    } else {
      out += static_cast<char>(0xC0 | (code >> 6));
      out += static_cast<char>(0x80 | (code & 0x3F));
    }
  }
  return out;
}

std::optional<std::string> from_byte_level(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = static_cast<std::uint8_t>(text[i]);
    if (code >= 0x80) {  // the alphabet ends at U+0143: two bytes, led by C2 .. C5
      if (code < 0xC2 || code > 0xC5 || ++i == text.size()) return std::nullopt;
      const unsigned tail = static_cast<std::uint8_t>(text[i]);
      if ((tail & 0xC0) != 0x80) return std::nullopt;
      code = (code & 0x1F) << 6 | (tail & 0x3F);
    }
    if (code > kLast || kAlphabet.byte[code] < 0) return std::nullopt;
    out += static_cast<char>(kAlphabet.byte[code]);
  }
  return out;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string out;
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool pad = i >= text.size() - padding;
    const int value = pad ? 0 : kBase64[static_cast<std::uint8_t>(text[i])];
    if (value < 0) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    if (i % 4 != 3) continue;
    for (const int shift : {16, 8, 0}) out += static_cast<char>(bits >> shift & 0xFF);
    bits = 0;
  }
  out.resize(out.size() - padding);
  return out;
}

}  // namespace qwen_vl
