// Ids equal to PyPI transformers on 2,000 strings and on whole conversations (tests/golden/text/README.md).
#include "chat.hpp"
#include "support.hpp"
#include "unicode.hpp"

namespace qwen_vl {
namespace {

using nlohmann::json;
using test::qwen;

TEST(Golden, IdsAreThoseOfTransformersOn2000Strings) {
  if (!qwen()) GTEST_SKIP() << test::kNoRanks;
  const auto lines = test::lines_of(TEXT_GOLDEN "/tokenizer.jsonl");
  ASSERT_EQ(lines.size(), 2000u);
  int wrong = 0;
  for (const auto& line : lines) {
    const json row = json::parse(line);
    const auto text = row[0].get<std::string>();
    const auto wanted = row[1].get<std::vector<std::int64_t>>();
    const auto got = qwen()->encode(text);
    if (got == wanted) continue;
    ++wrong;
    ADD_FAILURE() << row[0].dump(-1, ' ', true) << " wanted " << row[1] << " got " << json(got);
    if (wrong == 5) break;
  }
}

TEST(Golden, DecodingGivesTheNormalizedTextBack) {
  if (!qwen()) GTEST_SKIP() << test::kNoRanks;
  for (const auto& line : test::lines_of(TEXT_GOLDEN "/tokenizer.jsonl")) {
    const json row = json::parse(line);
    const auto decoded = qwen()->decode(row[1].get<std::vector<std::int64_t>>());
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_EQ(*decoded, to_nfc(row[0].get<std::string>())) << line;
  }
}

TEST(Golden, SpecialTokensHaveTheIdsOfQwen) {
  if (!qwen()) GTEST_SKIP() << test::kNoRanks;
  EXPECT_EQ(qwen()->size(), 151665);
  EXPECT_EQ(qwen()->id_of("<|endoftext|>"), 151643);
  EXPECT_EQ(qwen()->id_of("<|im_start|>"), 151644);
  EXPECT_EQ(qwen()->id_of("<|im_end|>"), 151645);
  EXPECT_EQ(qwen()->id_of("<|vision_start|>"), 151652);
  EXPECT_EQ(qwen()->id_of("<|image_pad|>"), 151655);
  EXPECT_EQ(qwen()->id_of("<|video_pad|>"), 151656);
  EXPECT_EQ(qwen()->id_of("<tool_call>"), 151657);
  EXPECT_EQ(qwen()->id_of("<|file_sep|>"), 151664);
}

Conversation conversation_of(const json& turns) {
  Conversation conversation;
  for (const json& turn : turns) {
    Turn& out = conversation.turns.emplace_back();
    out.role = turn[0];
    for (const std::string part : turn[1]) {
      const auto kind = part == "<image>" ? Part::Kind::kImage : part == "<video>" ? Part::Kind::kVideo : Part::Kind::kText;
      out.parts.push_back({kind, kind == Part::Kind::kText ? part : ""});
    }
  }
  return conversation;
}

TEST(Golden, ConversationsAreThoseOfThePublishedTemplate) {
  if (!qwen()) GTEST_SKIP() << test::kNoRanks;
  const auto lines = test::lines_of(TEXT_GOLDEN "/chat.jsonl");
  ASSERT_EQ(lines.size(), 10u);
  for (const auto& line : lines) {
    const json row = json::parse(line);
    const ChatOptions options{.generation_prompt = row["generation_prompt"], .number_pictures = row["number_pictures"]};
    const auto counts = row["counts"].get<std::vector<std::int64_t>>();
    const auto encoded = encode_chat(*qwen(), conversation_of(row["turns"]), counts, options);
    ASSERT_TRUE(encoded) << encoded.error().message;
    EXPECT_EQ(encoded->ids, row["ids"].get<std::vector<std::int64_t>>()) << line;
    EXPECT_EQ(encoded->labels.size(), encoded->ids.size());
  }
}

TEST(Golden, RenderedTextIsThatOfThePublishedTemplate) {
  for (const auto& line : test::lines_of(TEXT_GOLDEN "/chat.jsonl")) {
    const json row = json::parse(line);
    std::string wanted = row["text"];   // the file has the placeholders repeated
    for (const std::string pad : {"<|image_pad|>", "<|video_pad|>"}) {
      for (std::size_t at = wanted.find(pad + pad); at != std::string::npos; at = wanted.find(pad + pad)) wanted.erase(at, pad.size());
    }
    const auto text = render_chat(conversation_of(row["turns"]), {.generation_prompt = row["generation_prompt"], .number_pictures = row["number_pictures"]});
    ASSERT_TRUE(text) << text.error().message;
    EXPECT_EQ(*text, wanted);
  }
}

TEST(Golden, CharacterClassesAreThoseOfTheRegularExpressions) {
  const json wanted = json::parse(test::read(TEXT_GOLDEN "/classes.json"));
  constexpr char kLetters[] = {'o', 'L', 'N', 'S'};
  std::map<std::string, std::int64_t> counts;
  std::int64_t runs = 0, sum = 0;
  char before = 0;
  for (char32_t code = 0; code < 0x110000; ++code) {
    const bool surrogate = code >= 0xD800 && code < 0xE000;
    const char letter = kLetters[static_cast<int>(surrogate ? CharClass::kOther : char_class(code))];
    ++counts[std::string(1, letter)];
    if (letter == before) continue;
    before = letter;
    ++runs;
    sum += static_cast<std::int64_t>(code) * letter;
  }
  EXPECT_EQ(json(counts), wanted["counts"]);
  EXPECT_EQ(runs, wanted["runs"]);
  EXPECT_EQ(sum, wanted["sum_of_start_times_letter"]);
}

}  // namespace
}  // namespace qwen_vl
