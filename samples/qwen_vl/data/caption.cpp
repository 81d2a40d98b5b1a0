#include "caption.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <troupe/base/text.hpp>

namespace qwen_vl {
namespace {

constexpr std::string_view kMark = ".utf8=";
constexpr const char* kEnglish = "en";

/// The language of a line like "pt_br.utf8=...", or "".
std::string_view language_of(std::string_view line) {
  const std::size_t mark = line.find(kMark);
  if (mark == std::string_view::npos || mark == 0 || mark > 20) return {};
  const auto in_code = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '@' || c == '-'; };
  return std::ranges::all_of(line.substr(0, mark), in_code) ? line.substr(0, mark) : std::string_view();
}

void trim_end(std::string& text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
}

/// Bytes of the sequence that begins with `lead`, and the bounds of its second byte; 0 when none begins so. Source: Unicode 15, table 3-7.
struct Sequence {
  std::size_t length;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
};
Sequence sequence_of(unsigned char lead) {
  if (lead < 0x80) return {1};
  if (lead >= 0xC2 && lead <= 0xDF) return {2};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};
  if (lead == 0xED) return {3, 0x80, 0x9F};
  if (lead >= 0xE1 && lead <= 0xEF) return {3};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (lead >= 0xF1 && lead <= 0xF3) return {4};
  if (lead == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

}  // namespace

bool is_valid_utf8(std::string_view bytes) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  for (std::size_t i = 0; i < bytes.size();) {
    const Sequence one = sequence_of(at(i));
    if (one.length == 0 || bytes.size() - i < one.length) return false;
    if (one.length > 1 && (at(i + 1) < one.low || at(i + 1) > one.high)) return false;
    for (std::size_t k = 2; k < one.length; ++k) {
      if ((at(i + k) & 0xC0) != 0x80) return false;
    }
    i += one.length;
  }
  return true;
}

troupe::Result<std::string> caption_in(std::string_view content, const std::string& name, const std::string& language) {
  if (!is_valid_utf8(content)) return troupe::fail(troupe::Errc::kBadData, troupe::text(name, ": is no UTF-8 text"));
  std::string out;
  while (!content.empty()) {
    const std::size_t length = std::min(content.find('\n'), content.size() - 1) + 1;
    const std::string_view line = content.substr(0, length);
    content.remove_prefix(length);
    const std::string_view code = language_of(line);
    if (code.empty() && language == kEnglish) out += line;
    if (!code.empty() && code == language) {
      out = line.substr(code.size() + kMark.size());
      break;
    }
  }
  trim_end(out);
  return out;
}

Record caption_record(std::string caption, std::vector<PictureSource> pictures, const std::string& prompt, std::string where) {
  Turn asked{"user", std::vector<Part>(pictures.size(), Part{Part::Kind::kImage})};
  asked.parts.push_back({Part::Kind::kText, prompt});
  Record out;
  out.conversation.turns = {std::move(asked), Turn{"assistant", {Part{Part::Kind::kText, std::move(caption)}}}};
  out.pictures = std::move(pictures);
  out.where = std::move(where);
  return out;
}

}  // namespace qwen_vl
