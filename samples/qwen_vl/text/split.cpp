#include "split.hpp"

#include "unicode.hpp"

namespace qwen_vl {
namespace {

constexpr Split kAll[] = {Split::kQwen2, Split::kCl100k, Split::kGpt2};

bool is_line_end(char c) { return c == '\n' || c == '\r'; }

/// The end of the run of characters of one class that starts at `at`.
std::size_t run_end(std::string_view text, std::size_t at, CharClass kind) {
  while (at < text.size()) {
    const Glyph glyph = glyph_at(text.data() + at);
    if (glyph.kind != kind) break;
    at += glyph.length;
  }
  return at;
}

/// Length of 's 't 're 've 'm 'll 'd at an apostrophe, 0 for none. Oniguruma's (?i:) takes the long s (U+017F) for an s.
std::size_t contraction(Split split, std::string_view text, std::size_t at) {
  const bool fold = split != Split::kGpt2;
  const auto letter = [&](std::size_t i) {
    const char c = at + i < text.size() ? text[at + i] : '\0';
    return fold && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  };
  const char first = letter(1), second = letter(2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  if ((first == 'r' || first == 'v') && second == 'e') return 3;
  if (first == 'l' && second == 'l') return 3;
  return fold && text.substr(at + 1, 2) == "\xC5\xBF" ? 3 : 0;
}

/// \s*[\r\n]+|\s+(?!\S)|\s+ (GPT-2: without the first): up to the last line end; else all but the last character, which belongs to the
/// word behind it; else the lone one.
std::size_t space_end(Split split, std::string_view text, std::size_t begin) {
  std::size_t at = begin, last = begin, line = begin;
  while (at < text.size()) {
    const Glyph glyph = glyph_at(text.data() + at);
    if (glyph.kind != CharClass::kSpace) break;
    last = at;
    at += glyph.length;
    if (is_line_end(text[last])) line = at;
  }
  if (split != Split::kGpt2 && line > begin) return line;
  return at == text.size() || last == begin ? at : last;
}

std::size_t gpt2_end(std::string_view text, std::size_t begin) {
  const std::size_t start = text[begin] == ' ' && begin + 1 < text.size() ? begin + 1 : begin;
  const CharClass kind = glyph_at(text.data() + start).kind;
  return kind == CharClass::kSpace ? space_end(Split::kGpt2, text, begin) : run_end(text, start, kind);
}

std::size_t number_end(Split split, std::string_view text, std::size_t at) {
  for (int count = split == Split::kCl100k ? 3 : 1; count > 0 && at < text.size(); --count) {
    const Glyph glyph = glyph_at(text.data() + at);
    if (glyph.kind != CharClass::kNumber) break;
    at += glyph.length;
  }
  return at;
}

}  // namespace

std::string_view pattern_of(Split split) {
  switch (split) {
    case Split::kQwen2:
      return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
    case Split::kCl100k:
      return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
    case Split::kGpt2:
      return R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
  }
  return {};
}

std::optional<Split> split_of(std::string_view pattern) {
  for (const Split split : kAll) {
    if (pattern_of(split) == pattern) return split;
  }
  return std::nullopt;
}

std::size_t piece_end(Split split, std::string_view text, std::size_t begin) {
  if (text[begin] == '\'') {
    if (const std::size_t length = contraction(split, text, begin)) return begin + length;
  }
  if (split == Split::kGpt2) return gpt2_end(text, begin);
  const Glyph first = glyph_at(text.data() + begin);
  std::size_t next = begin + first.length;
  if (first.kind == CharClass::kLetter) return run_end(text, next, CharClass::kLetter);
  if (first.kind == CharClass::kNumber) return number_end(split, text, begin);
  const Glyph second = next < text.size() ? glyph_at(text.data() + next) : Glyph{CharClass::kSpace, 0};
  if (second.kind == CharClass::kLetter && !is_line_end(text[begin])) return run_end(text, next + second.length, CharClass::kLetter);
  const bool led_by_space = text[begin] == ' ' && second.kind == CharClass::kOther;
  if (first.kind == CharClass::kSpace && !led_by_space) return space_end(split, text, begin);
  next = run_end(text, next, CharClass::kOther);
  while (next < text.size() && is_line_end(text[next])) ++next;
  return next;
}

}  // namespace qwen_vl
