#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <troupe/base/result.hpp>

namespace stamps {

/// Token numbers that are no words.
enum Special : std::int64_t { kPad = 0, kBegin = 1, kEnd = 2, kUnknown = 3, kSpecials = 4 };

struct Example {
  std::string picture;                  ///< Path.
  std::string caption;                  ///< As it was written.
  std::vector<std::int64_t> tokens;     ///< kBegin, words, kEnd.
  static auto troupe_fields(auto& self) { return std::tie(self.picture, self.caption, self.tokens); }
};

/// Pictures with captions, split by a hash of the file's name, words as tokens.
struct Dataset {
  std::vector<Example> train;
  std::vector<Example> held_out;
  std::vector<std::string> words;       ///< By token.
  std::int64_t without_caption = 0;     ///< Pictures left out, since nobody says what they show.
  std::int64_t shortened = 0;           ///< Captions cut to kMaxTokens.
};

/// Longest caption in tokens, kBegin and kEnd included; the longest of the stamps has 37.
inline constexpr std::int64_t kMaxTokens = 48;

/// Finds every PNG below `folder` with a caption beside it (name.txt, first line; a name_mirror.png without
/// one shares its original's). About every tenth, by a hash of its name, is held out, mirrors with their
/// originals. Words that occur once in training are kUnknown.
/// Fails with: kIo when the folder can't be read; kBadData when it holds no picture with a caption.
[[nodiscard]] troupe::Result<Dataset> load_dataset(const std::string& folder);

/// "a red car" from tokens.
[[nodiscard]] std::string caption_of(const std::vector<std::string>& words, const std::vector<std::int64_t>& tokens);

/// Mean negative log-likelihood of the held-out tokens under the training frequencies of single tokens: what
/// a model that looks at nothing reaches.
[[nodiscard]] double unigram_loss(const Dataset& data);

}  // namespace stamps
