#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace qwen_vl {

/// A token that is found in text as it stands, before any split or merge.
struct AddedToken {
  std::string content;
  std::int64_t id = -1;       ///< -1: the next free one, where a function gives ids.
  bool special = true;        ///< decode() can leave it out.
  bool normalized = false;    ///< Looked for after normalization, not before.
  bool in_model = false;      ///< The model's own vocabulary lists it too.
  bool operator==(const AddedToken&) const = default;
};

/// The 22 tokens that Qwen2.5-VL adds behind its ranks, 151643 <|endoftext|> to 151664 <|file_sep|>; the ids are -1.
/// Source: the published tokenizer_config.json of Qwen2.5-VL.
[[nodiscard]] std::vector<AddedToken> qwen_added_tokens();

/// Finds added tokens in text: the leftmost, and of those that start there the longest. Fixed once filled; any thread.
class AddedMatcher {
 public:
  struct Match {
    std::size_t begin = 0, end = 0;
    std::int64_t id = -1;
  };

  /// `content` must not be empty.
  void add(std::string content, std::int64_t id);
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] std::optional<Match> next(std::string_view text, std::size_t from) const;

 private:
  struct Entry {
    std::string content;
    std::int64_t id;
  };
  std::array<std::vector<Entry>, 256> by_first_byte_;   ///< Longest first.
  std::size_t count_ = 0;
  int only_first_ = -1;   ///< The first byte of all, when it is one; -2: there are several.
};

}  // namespace qwen_vl
