#include "added_tokens.hpp"

#include <algorithm>

namespace qwen_vl {

std::vector<AddedToken> qwen_added_tokens() {
  std::vector<AddedToken> tokens;
  for (const char* content : {"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>", "<|box_end|>",
                              "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"}) {
    tokens.push_back({.content = content});
  }
  for (const char* content :
       {"<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"}) {
    tokens.push_back({.content = content, .special = false});
  }
  return tokens;
}

void AddedMatcher::add(std::string content, std::int64_t id) {
  const auto first = static_cast<std::uint8_t>(content[0]);
  only_first_ = only_first_ == -1 || only_first_ == first ? first : -2;
  auto& entries = by_first_byte_[first];
  const auto at = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.content.size() < content.size(); });
  entries.insert(at, {std::move(content), id});
  ++count_;
}

std::optional<AddedMatcher::Match> AddedMatcher::next(std::string_view text, std::size_t from) const {
  if (count_ == 0) return std::nullopt;
  for (std::size_t at = from; at < text.size(); ++at) {
    if (only_first_ >= 0) at = text.find(static_cast<char>(only_first_), at);
    if (at >= text.size()) return std::nullopt;
    for (const Entry& entry : by_first_byte_[static_cast<std::uint8_t>(text[at])]) {
      if (text.compare(at, entry.content.size(), entry.content) == 0) return Match{at, at + entry.content.size(), entry.id};
    }
  }
  return std::nullopt;
}

}  // namespace qwen_vl
