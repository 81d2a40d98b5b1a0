// The trainer, against a slow twin that counts everything again for each merge.
#include "support.hpp"
#include "unicode.hpp"

namespace qwen_vl {
namespace {

TEST(Vocabulary, LearnsTheMostFrequentPairFirst) {
  const std::vector<std::string> lines = {"abab", "ab"};
  const auto tokenizer = troupe::or_throw(train_vocabulary(lines, {.size = 258, .added = {}}));
  ASSERT_EQ(tokenizer.parts().merges.size(), 1u);
  EXPECT_EQ(tokenizer.parts().tokens[256], "ab") << "three times";
  EXPECT_EQ(tokenizer.parts().tokens.size(), 257u) << "abab stands once: below least_count";
}

TEST(Vocabulary, OrdersIdsBytesMergesAdded) {
  const Tokenizer tokenizer = test::small();
  EXPECT_EQ(tokenizer.size(), 322);
  EXPECT_EQ(tokenizer.id_of("!"), 0);
  EXPECT_EQ(tokenizer.id_of("<|endoftext|>"), 300);
  EXPECT_EQ(tokenizer.id_of("<|file_sep|>"), 321);
}

/// Counts pairs of all words again before each merge.
std::vector<std::string> slow(const std::vector<std::string>& lines, std::size_t count) {
  const Tokenizer bytes = troupe::or_throw(train_vocabulary({}, {.size = 256, .added = {}}));
  std::vector<std::string> tokens = bytes.parts().tokens;
  std::vector<std::vector<std::size_t>> words;
  for (const auto& line : lines) {
    for (std::size_t begin = 0; begin < line.size();) {
      const std::size_t end = piece_end(Split::kQwen2, line, begin);
      words.emplace_back();
      for (; begin < end; ++begin) words.back().push_back(static_cast<std::size_t>(*bytes.id_of(line.substr(begin, 1))));
    }
  }
  while (tokens.size() < count) {
    std::map<std::pair<std::size_t, std::size_t>, int> pairs;
    for (const auto& word : words) {
      for (std::size_t i = 0; i + 1 < word.size(); ++i) ++pairs[{word[i], word[i + 1]}];
    }
    auto best = pairs.begin();
    for (auto at = pairs.begin(); at != pairs.end(); ++at) {
      if (at->second > best->second) best = at;
    }
    if (pairs.empty() || best->second < 2) break;
    const auto [left, right] = best->first;
    const std::string made = tokens[left] + tokens[right];
    const auto id = static_cast<std::size_t>(std::find(tokens.begin(), tokens.end(), made) - tokens.begin());
    if (id == tokens.size()) tokens.push_back(made);
    for (auto& word : words) {
      for (std::size_t i = 0; i + 1 < word.size(); ++i) {
        if (word[i] != left || word[i + 1] != right) continue;
        word[i] = id;
        word.erase(word.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
    }
  }
  return tokens;
}

TEST(Vocabulary, AgreesWithCountingEverythingAgain) {
  std::mt19937 random(9);
  for (int round = 0; round < 40; ++round) {
    std::vector<std::string> lines;
    for (int line = 0; line < 8; ++line) {
      std::string& text = lines.emplace_back();
      for (int i = 0; i < 40; ++i) text += "aab cab"[random() % (round % 2 ? 2 : 7)];   // odd rounds: long runs of few letters
    }
    const auto tokenizer = troupe::or_throw(train_vocabulary(lines, {.size = 320, .added = {}}));
    EXPECT_EQ(tokenizer.parts().tokens, slow(lines, 320));
  }
}

TEST(Vocabulary, TheTrainedTokensAreUsed) {
  const Tokenizer tokenizer = test::small();
  EXPECT_EQ(tokenizer.encode(" the cat").size(), 2u);
  EXPECT_LT(tokenizer.encode("that is the hat").size(), 6u);
}

TEST(Vocabulary, AddedTokensInTheLinesTeachNothing) {
  const std::vector<std::string> plain = {"cat cat", "dog dog"}, marked = {"cat cat<|im_end|>", "dog<|im_end|> dog"};
  EXPECT_EQ(troupe::or_throw(train_vocabulary(plain, {.size = 290})).parts(), troupe::or_throw(train_vocabulary(marked, {.size = 290})).parts());
}

TEST(Vocabulary, RefusesWhatHasNoRoom) {
  const auto tokenizer = train_vocabulary({}, {.size = 270});
  ASSERT_FALSE(tokenizer);
  EXPECT_EQ(tokenizer.error().code, troupe::Errc::kInvalidArgument);
  EXPECT_THAT(tokenizer.error().message, ::testing::HasSubstr("270"));
  EXPECT_FALSE(train_vocabulary({}, {.size = 300, .added = {{.content = ""}}}));
  EXPECT_FALSE(train_vocabulary({}, {.size = 300, .added = {{.content = "<a>"}, {.content = "<a>"}}}));
}

}  // namespace
}  // namespace qwen_vl
