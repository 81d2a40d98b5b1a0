#include "lines.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <troupe/base/text.hpp>

namespace troupe::detail {
namespace {

/// The length of the UTF-8 sequence `bytes` starts with; 0 when it is none (cut short, overlong, a surrogate, past U+10FFFF).
std::size_t utf8_length(std::string_view bytes) {
  const auto at = [&](std::size_t i) { return static_cast<std::uint8_t>(bytes[i]); };
  const std::uint8_t lead = at(0);
  const std::size_t length = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (length == 0 || bytes.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xC0) != 0x80) return 0;
  }
  if ((lead == 0xC2 && at(1) < 0xA0) ||    // C1 controls: some terminals obey them
      (lead == 0xE0 && at(1) < 0xA0) || (lead == 0xED && at(1) >= 0xA0) || (lead == 0xF0 && at(1) < 0x90) || (lead == 0xF4 && at(1) >= 0x90)) {
    return 0;
  }
  return length;
}

}  // namespace

std::string printable(std::string_view bytes) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const auto first = static_cast<std::uint8_t>(bytes.front());
    const bool control = (first < 0x20 && first != '\t') || first == 0x7F;
    const std::size_t length = control ? 0 : utf8_length(bytes);
    if (length == 0) {
      out += {'\\', 'x', kHex[first >> 4], kHex[first & 15]};
    } else {
      out += bytes.substr(0, length);
    }
    bytes.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

void LineSplitter::feed(std::string_view bytes, const Emit& emit) {
  while (!bytes.empty()) {
    if (std::exchange(after_return_, false) && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    const std::size_t end = bytes.find_first_of("\r\n");
    keep(bytes.substr(0, end));
    if (end == std::string_view::npos) return;
    after_return_ = bytes[end] == '\r';
    if (!after_return_ || !line_.empty()) end_line(emit);
    bytes.remove_prefix(end + 1);
  }
}

void LineSplitter::finish(const Emit& emit) {
  if (!line_.empty()) end_line(emit);
}

void LineSplitter::keep(std::string_view part) {
  const std::size_t room = std::min(kMaxLine - line_.size(), part.size());
  line_ += part.substr(0, room);
  dropped_ += part.size() - room;
}

void LineSplitter::end_line(const Emit& emit) {
  std::string line = printable(std::exchange(line_, {}));
  if (const std::size_t dropped = std::exchange(dropped_, 0); dropped > 0) line += text(" [cut: ", dropped, " more bytes in this line]");
  emit(std::move(line));
}

}  // namespace troupe::detail
