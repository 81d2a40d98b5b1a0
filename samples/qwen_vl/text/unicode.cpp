#include "unicode.hpp"

#include <algorithm>
#include <iterator>

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/uniset.h>
#include <unicode/utf8.h>

#include <troupe/base/result.hpp>

namespace qwen_vl {
namespace {

struct Range {
  char32_t first, last;
};

// Debian 12's ICU 72 stops at Unicode 15.0. Oniguruma 6.9.10 knows these too, assigned in 15.1 and 16.
constexpr Range kYoungLetters[] = {
    {0x1C89, 0x1C8A},   {0xA7CB, 0xA7CD},   {0xA7DA, 0xA7DC},   {0x105C0, 0x105F3}, {0x10D4A, 0x10D65}, {0x10D6F, 0x10D85}, {0x10EC2, 0x10EC4},
    {0x11380, 0x11389}, {0x1138B, 0x1138B}, {0x1138E, 0x1138E}, {0x11390, 0x113B5}, {0x113B7, 0x113B7}, {0x113D1, 0x113D1}, {0x113D3, 0x113D3},
    {0x11BC0, 0x11BE0}, {0x13460, 0x143FA}, {0x16100, 0x1611D}, {0x16D40, 0x16D6C}, {0x18CFF, 0x18CFF}, {0x1E5D0, 0x1E5ED}, {0x1E5F0, 0x1E5F0},
    {0x2EBF0, 0x2EE5D}};
constexpr Range kYoungNumbers[] = {{0x10D40, 0x10D49}, {0x116D0, 0x116E3}, {0x11BF0, 0x11BF9}, {0x16130, 0x16139},
                                   {0x16D70, 0x16D79}, {0x1CCF0, 0x1CCF9}, {0x1E5F1, 0x1E5FA}};

template <std::size_t N>
bool within(const Range (&ranges)[N], char32_t code) {
  const auto* after = std::upper_bound(std::begin(ranges), std::end(ranges), code, [](char32_t c, const Range& range) { return c < range.first; });
  return after != std::begin(ranges) && code <= std::prev(after)->last;
}

/// Well-formed UTF-8 of two bytes or more.
char32_t decode(const unsigned char* at, std::uint8_t length) {
  const auto tail = [at](int i) { return static_cast<char32_t>(at[i] & 0x3F); };
  if (length == 2) return static_cast<char32_t>(at[0] & 0x1F) << 6 | tail(1);
  if (length == 3) return static_cast<char32_t>(at[0] & 0x0F) << 12 | tail(1) << 6 | tail(2);
  return static_cast<char32_t>(at[0] & 0x07) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3);
}

const icu::Normalizer2& nfc_of_unicode_9() {
  static const icu::FilteredNormalizer2* const normalizer = [] {
    UErrorCode status = U_ZERO_ERROR;
    const icu::Normalizer2* nfc = icu::Normalizer2::getNFCInstance(status);
    auto* known = new icu::UnicodeSet(u"[:age=9.0:]", status);  // both live as long as the process, as ICU's own tables do
    if (U_FAILURE(status)) throw troupe::Exception({troupe::Errc::kUnavailable, std::string("ICU has no NFC data: ") + u_errorName(status)});
    known->freeze();
    return new icu::FilteredNormalizer2(*nfc, *known);
  }();
  return *normalizer;
}

/// The end of a stretch of about a megabyte: ICU counts in 32 bits, and no ASCII character joins what stands before it.
std::size_t chunk_end(std::string_view text, std::size_t begin) {
  constexpr std::size_t kWanted = 1 << 20, kMost = 1 << 29;
  std::size_t end = std::min(text.size(), begin + kWanted);
  while (end < text.size() && end - begin < kMost && static_cast<unsigned char>(text[end]) >= 0x80) ++end;
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // at kMost: between two characters
  return end;
}

}  // namespace

CharClass char_class(char32_t code) {
  if (code < 128) return kAsciiClasses[code];
  const auto category = u_charType(static_cast<UChar32>(code));
  const std::uint32_t mask = U_MASK(category);
  if (mask & U_GC_L_MASK) return CharClass::kLetter;
  if (mask & U_GC_N_MASK) return CharClass::kNumber;
  if ((mask & U_GC_Z_MASK) || code == 0x85) return CharClass::kSpace;
  if (category != U_UNASSIGNED) return CharClass::kOther;
  return within(kYoungLetters, code) ? CharClass::kLetter : within(kYoungNumbers, code) ? CharClass::kNumber : CharClass::kOther;
}

Glyph long_glyph_at(const char* at) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(at);
  const std::uint8_t length = bytes[0] < 0xE0 ? 2 : bytes[0] < 0xF0 ? 3 : 4;
  return {char_class(decode(bytes, length)), length};
}

bool is_utf8(std::string_view bytes) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  for (std::size_t i = 0; i < bytes.size();) {
    if (data[i] < 0x80) {
      ++i;
      continue;
    }
    const std::size_t start = i;
    [[maybe_unused]] UChar32 code = 0;
    U8_NEXT(data, i, bytes.size(), code);
    if (code < 0 || i <= start) return false;
  }
  return true;
}

std::string repair_utf8(std::string_view bytes) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  std::string out;
  out.reserve(bytes.size());
  for (std::size_t i = 0; i < bytes.size();) {
    const std::size_t start = i;
    UChar32 code = 0;
    U8_NEXT(data, i, bytes.size(), code);
    if (code < 0) {
      out += "\xEF\xBF\xBD";
    } else {
      out.append(bytes, start, i - start);
    }
  }
  return out;
}

bool is_plainly_nfc(std::string_view text) {
  bool plain = true;  // no early exit, so that the loop becomes vector code
  for (const char c : text) plain &= static_cast<unsigned char>(c) < 0xCC;  // 0xCC starts U+0300
  return plain;
}

std::string to_nfc(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  icu::StringByteSink<std::string> sink(&out);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = chunk_end(text, begin);
    const std::string_view part = text.substr(begin, end - begin);
    begin = end;
    if (is_plainly_nfc(part)) {
      out += part;
      continue;
    }
    UErrorCode status = U_ZERO_ERROR;
    nfc_of_unicode_9().normalizeUTF8(0, {part.data(), static_cast<std::int32_t>(part.size())}, sink, nullptr, status);
    if (U_FAILURE(status)) throw troupe::Exception({troupe::Errc::kInternal, std::string("ICU can't normalize: ") + u_errorName(status)});
  }
  return out;
}

}  // namespace qwen_vl
