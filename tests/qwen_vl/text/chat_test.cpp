// Labels and refusals of the chat template; its ids are compared in golden_test.cpp.
#include "chat.hpp"
#include "support.hpp"

namespace qwen_vl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Kind = Part::Kind;

Part say(std::string text) { return {Kind::kText, std::move(text)}; }
Part image() { return {Kind::kImage}; }
Part video() { return {Kind::kVideo}; }

/// The text of the tokens that have a label, and where labels stand they equal the ids.
std::string labelled(const Tokenizer& tokenizer, const Encoded& encoded) {
  std::vector<std::int64_t> kept;
  EXPECT_EQ(encoded.ids.size(), encoded.labels.size());
  for (std::size_t i = 0; i < encoded.ids.size(); ++i) {
    if (encoded.labels[i] == kIgnored) continue;
    EXPECT_EQ(encoded.labels[i], encoded.ids[i]);
    kept.push_back(encoded.ids[i]);
  }
  return troupe::or_throw(tokenizer.decode(kept));
}

void expect_refused(const Conversation& conversation, const std::vector<std::int64_t>& counts, troupe::Errc code, const ::testing::Matcher<const std::string&>& message) {
  const auto encoded = encode_chat(test::small(), conversation, counts);
  ASSERT_FALSE(encoded);
  EXPECT_EQ(encoded.error().code, code);
  EXPECT_THAT(encoded.error().message, message);
}

TEST(Chat, OnlyAnswersHaveLabels) {
  const Tokenizer tokenizer = test::small();
  const Conversation conversation{{{"user", {image(), say("what is that")}}, {"assistant", {say("the cat")}}, {"user", {say("and")}}, {"assistant", {say("the hat")}}}};
  const auto encoded = troupe::or_throw(encode_chat(tokenizer, conversation, std::vector<std::int64_t>{3}));
  EXPECT_EQ(labelled(tokenizer, encoded), "the cat<|im_end|>the hat<|im_end|>");
}

TEST(Chat, APlaceholderStandsForEachTokenOfItsPicture) {
  const Tokenizer tokenizer = test::small();
  const Conversation conversation{{{"user", {image(), say(" and "), video(), image(), say("?")}}}};
  const auto encoded = troupe::or_throw(encode_chat(tokenizer, conversation, std::vector<std::int64_t>{2, 5, 1}));
  const auto text = troupe::or_throw(tokenizer.decode(encoded.ids));
  EXPECT_THAT(text, HasSubstr("<|vision_start|><|image_pad|><|image_pad|><|vision_end|> and <|vision_start|>" + [] {
                std::string pads;
                for (int i = 0; i < 5; ++i) pads += "<|video_pad|>";
                return pads;
              }() + "<|vision_end|><|vision_start|><|image_pad|><|vision_end|>?"));
}

TEST(Chat, PicturesInAnAnswerHaveNoLabels) {
  const Tokenizer tokenizer = test::small();
  const Conversation conversation{{{"user", {say("?")}}, {"assistant", {say("the "), image(), say(" cat")}}}};
  const auto encoded = troupe::or_throw(encode_chat(tokenizer, conversation, std::vector<std::int64_t>{4}));
  EXPECT_EQ(labelled(tokenizer, encoded), "the  cat<|im_end|>");
}

TEST(Chat, ATokenThatJoinsHeadAndAnswerHasNoLabel) {
  if (!test::qwen()) GTEST_SKIP() << test::kNoRanks;
  const Conversation conversation{{{"user", {say("?")}}, {"assistant", {say("\n\nYes")}}}};
  const auto encoded = troupe::or_throw(encode_chat(*test::qwen(), conversation, {}));
  EXPECT_EQ(labelled(*test::qwen(), encoded), "Yes<|im_end|>") << "the head's line end and the answer's are one token";
}

TEST(Chat, AnswersThatNormalizationChangesKeepTheirLabels) {
  const Tokenizer tokenizer = test::small();
  const Conversation conversation{{{"user", {say("e\u0301")}}, {"assistant", {say("\u0301e\u0301 cat")}}}};
  EXPECT_EQ(labelled(tokenizer, troupe::or_throw(encode_chat(tokenizer, conversation, {}))), "\u0301\u00e9 cat<|im_end|>");
}

TEST(Chat, TheGenerationPromptHasNoLabels) {
  const Tokenizer tokenizer = test::small();
  const auto encoded = troupe::or_throw(encode_chat(tokenizer, {{{"user", {say("the cat")}}}}, {}, {.generation_prompt = true}));
  EXPECT_EQ(labelled(tokenizer, encoded), "");
  EXPECT_TRUE(troupe::or_throw(tokenizer.decode(encoded.ids)).ends_with("<|im_end|>\n<|im_start|>assistant\n"));
}

TEST(Chat, TheSystemPromptCanBeChosen) {
  const Conversation bare{{{"user", {say("hi")}}}}, own{{{"system", {say("short")}}, {"user", {say("hi")}}}};
  EXPECT_EQ(troupe::or_throw(render_chat(bare, {.system = "short"})), troupe::or_throw(render_chat(own)));
}

TEST(Chat, CountsMustMatchThePictures) {
  const Conversation conversation{{{"user", {image(), video(), image(), say("?")}}}};
  expect_refused(conversation, {1, 2}, troupe::Errc::kMismatch, AllOf(HasSubstr("2 images"), HasSubstr("1 videos"), HasSubstr("2 placeholder counts")));
  expect_refused(conversation, {1, 2, 3, 4}, troupe::Errc::kMismatch, HasSubstr("4 placeholder counts"));
  expect_refused(conversation, {1, 0, 3}, troupe::Errc::kInvalidArgument, AllOf(HasSubstr("video 1"), HasSubstr("got 0")));
}

TEST(Chat, RefusesWhatTheTemplateHasNot) {
  expect_refused({}, {}, troupe::Errc::kInvalidArgument, HasSubstr("without turns"));
  expect_refused({{{"user", {say("x")}}, {"tool", {say("x")}}}}, {}, troupe::Errc::kInvalidArgument, AllOf(HasSubstr("turn 1"), HasSubstr("'tool'")));
  expect_refused({{{"user", {say("a <|image_pad|>")}}}}, {}, troupe::Errc::kInvalidArgument, AllOf(HasSubstr("turn 0"), HasSubstr("<|image_pad|>")));
  expect_refused({{{"user", {say("<|video"), say("_pad|>")}}}}, {}, troupe::Errc::kInvalidArgument, HasSubstr("<|video_pad|>"));
}

TEST(Chat, ATokenizerWithoutTheTokensIsRefused) {
  const Tokenizer bare = troupe::or_throw(train_vocabulary({}, {.size = 257, .added = {{.content = "<|im_start|>"}}}));
  const auto encoded = encode_chat(bare, {{{"user", {say("x")}}}}, {});
  ASSERT_FALSE(encoded);
  EXPECT_THAT(encoded.error().message, HasSubstr("<|im_end|>"));
}

}  // namespace
}  // namespace qwen_vl
