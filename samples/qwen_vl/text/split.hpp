#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace qwen_vl {

/// How text is cut into the pieces that merges never cross. Each is one published regular expression, walked by hand.
enum class Split : std::uint8_t {
  kQwen2,   ///< Qwen2 and later: digits one by one.
  kCl100k,  ///< As Qwen2's, digits in threes (tiktoken's cl100k, Llama 3).
  kGpt2,    ///< GPT-2's: what a ByteLevel pre-tokenizer with use_regex means.
};

/// The regular expression, as tokenizer.json writes it.
[[nodiscard]] std::string_view pattern_of(Split split);

/// The split whose regular expression this is, letter by letter. Empty for any other.
[[nodiscard]] std::optional<Split> split_of(std::string_view pattern);

/// The end of the piece that starts at `begin`: every byte of text belongs to exactly one piece, in order.
/// Needs begin < text.size(), at the start of a character; text is well-formed UTF-8. Takes time linear in the piece and in the white space behind it.
[[nodiscard]] std::size_t piece_end(Split split, std::string_view text, std::size_t begin);

}  // namespace qwen_vl
