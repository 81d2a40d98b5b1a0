// What holds for any tokenizer: round trips, special tokens, ill-formed input, threads.
#include <thread>

#include "support.hpp"
#include "unicode.hpp"

namespace qwen_vl {
namespace {

using test::small;

TEST(Tokenizer, DecodeOfEncodeIsTheNormalizedText) {
  std::mt19937 random(2);
  const Tokenizer tokenizer = small();
  for (int round = 0; round < 1500; ++round) {
    const std::string text = test::random_text(random, random() % 40);
    const auto ids = tokenizer.encode(text);
    EXPECT_EQ(troupe::or_throw(tokenizer.decode(ids)), to_nfc(text));
  }
}

TEST(Tokenizer, RoundTripsWithQwensRanksToo) {
  if (!test::qwen()) GTEST_SKIP() << test::kNoRanks;
  std::mt19937 random(4);
  for (int round = 0; round < 1500; ++round) {
    const std::string text = test::random_text(random, random() % 40);
    EXPECT_EQ(troupe::or_throw(test::qwen()->decode(test::qwen()->encode(text))), to_nfc(text));
  }
}

TEST(Tokenizer, IllFormedUtf8EncodesAsReplacements) {
  const Tokenizer tokenizer = small();
  EXPECT_EQ(tokenizer.encode("the \xFF cat"), tokenizer.encode("the \uFFFD cat"));
  EXPECT_EQ(tokenizer.encode("\xE2\x82<|im_end|>"), tokenizer.encode("\uFFFD<|im_end|>"));
  std::mt19937 random(8);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 40, ' ');
    for (char& c : bytes) c = static_cast<char>(random() % 256);
    EXPECT_EQ(tokenizer.encode(bytes), tokenizer.encode(repair_utf8(bytes)));
  }
}

TEST(Tokenizer, SpecialTokensInTextAreRecognisedAndCanBeSkipped) {
  const Tokenizer tokenizer = small();
  const std::int64_t end = *tokenizer.id_of("<|im_end|>"), call = *tokenizer.id_of("<tool_call>");
  const auto ids = tokenizer.encode("the<|im_end|><tool_call><|im_end|");
  EXPECT_EQ(std::count(ids.begin(), ids.end(), end), 1);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), call), 1);
  EXPECT_EQ(troupe::or_throw(tokenizer.decode(ids)), "the<|im_end|><tool_call><|im_end|");
  EXPECT_EQ(troupe::or_throw(tokenizer.decode(ids, Specials::kSkip)), "the<tool_call><|im_end|") << "<tool_call> is added but not special";
}

TEST(Tokenizer, TheLongestAddedTokenWins) {
  auto parts = small().parts();
  for (const char* content : {"<|im", "<|im_end|>!"}) {
    parts.added.push_back({.content = content, .id = static_cast<std::int64_t>(parts.tokens.size())});
    parts.tokens.push_back(content);
  }
  const Tokenizer tokenizer = troupe::or_throw(Tokenizer::make(parts, "test"));
  EXPECT_EQ(tokenizer.encode("<|im_end|>!").size(), 1u);
  EXPECT_EQ(tokenizer.encode("<|im_end|>").front(), *tokenizer.id_of("<|im_end|>"));
  EXPECT_EQ(tokenizer.encode("<|im").size(), 1u);
}

TEST(Tokenizer, NormalizedAddedTokensAreFoundAfterNormalization) {
  auto parts = small().parts();
  for (const bool normalized : {false, true}) {
    const std::string content = normalized ? "<caf\u00e9>" : "<th\u00e9>";
    parts.added.push_back({.content = content, .id = static_cast<std::int64_t>(parts.tokens.size()), .normalized = normalized});
    parts.tokens.push_back(content);
  }
  const Tokenizer tokenizer = troupe::or_throw(Tokenizer::make(parts, "test"));
  EXPECT_EQ(tokenizer.encode("<cafe\u0301>").size(), 1u);
  EXPECT_EQ(tokenizer.encode("<th\u00e9>").size(), 1u);
  EXPECT_GT(tokenizer.encode("<the\u0301>").size(), 1u);
}

TEST(Tokenizer, DecodeRefusesIdsItHasNot) {
  const Tokenizer tokenizer = small();
  for (const std::int64_t id : {std::int64_t{-1}, tokenizer.size(), std::int64_t{1} << 40}) {
    const auto text = tokenizer.decode(std::vector<std::int64_t>{1, id});
    ASSERT_FALSE(text);
    EXPECT_EQ(text.error().code, troupe::Errc::kInvalidArgument);
    EXPECT_THAT(text.error().message, ::testing::AllOf(::testing::HasSubstr(std::to_string(id)), ::testing::HasSubstr(std::to_string(tokenizer.size()))));
  }
}

TEST(Tokenizer, HalfACharacterDecodesToAReplacement) {
  const Tokenizer tokenizer = small();
  const auto ids = tokenizer.encode("\u56fe");
  ASSERT_EQ(ids.size(), 3u);
  EXPECT_EQ(troupe::or_throw(tokenizer.decode(std::span(ids).first(2))), "\uFFFD");
  std::string joined;
  for (const auto id : ids) joined += troupe::or_throw(tokenizer.bytes_of(id));
  EXPECT_EQ(joined, "\u56fe");
}

TEST(Tokenizer, IdOfTakesTheBytesOfAToken) {
  const Tokenizer tokenizer = small();
  for (std::int64_t id = 0; id < tokenizer.size(); ++id) EXPECT_EQ(tokenizer.id_of(troupe::or_throw(tokenizer.bytes_of(id))), id);
  EXPECT_FALSE(tokenizer.id_of("no such token"));
  EXPECT_TRUE(tokenizer.id_of(" the")) << "bytes, not the byte-level alphabet";
}

TEST(Tokenizer, ThreadsShareOneTokenizer) {
  const Tokenizer tokenizer = small();
  std::mt19937 random(6);
  const std::string text = test::random_text(random, 5000) + "the cat sat on the mat <|im_end|>";
  const auto wanted = tokenizer.encode(text);
  std::vector<std::vector<std::int64_t>> got(4);
  std::vector<std::thread> threads;
  for (auto& mine : got) threads.emplace_back([&mine, copy = tokenizer, &text] { mine = copy.encode(text); });
  for (auto& thread : threads) thread.join();
  for (const auto& mine : got) EXPECT_EQ(mine, wanted);
}

}  // namespace
}  // namespace qwen_vl
