// parse_record(): LLaVA's, ShareGPT's and messages' forms, and what is wrong with those that are none.
#include "records.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qwen_vl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using troupe::Errc;

/// "user: <i> What? | assistant: It."
std::string spelled(const Conversation& conversation) {
  std::string out;
  for (const auto& turn : conversation.turns) {
    out += (out.empty() ? "" : " | ") + turn.role + ":";
    for (const auto& part : turn.parts) out += part.kind == Part::Kind::kText ? " [" + part.text + "]" : part.kind == Part::Kind::kImage ? " <i>" : " <v>";
  }
  return out;
}

std::vector<std::string> names_of(const std::vector<PictureSource>& pictures) {
  std::vector<std::string> out;
  for (const auto& picture : pictures) out.push_back(picture.name);
  return out;
}

void expect_refused(const std::string& json, const std::string& because, Errc code = Errc::kBadData) {
  const auto got = parse_record(json, "my.jsonl:3");
  ASSERT_FALSE(got) << json;
  EXPECT_EQ(got.error().code, code) << json;
  EXPECT_THAT(got.error().message, AllOf(StartsWith("my.jsonl:3: "), HasSubstr(because))) << json;
}

TEST(ParseRecord, ReadsLlavaWithSeveralTurns) {
  const auto got = parse_record(R"({"id": "0033", "image": "coco/1.jpg", "model": "x", "conversations": [{"from": "system", "value": "Be short."},
    {"from": "human", "value": "<image>\nWhat is this?"}, {"from": "gpt", "value": "A bus."}, {"from": "human", "value": "Its colour?"}, {"from": "gpt", "value": "Red."}]})", "f:1");
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->id, "0033");
  EXPECT_EQ(got->where, "f:1");
  EXPECT_THAT(names_of(got->pictures), ::testing::ElementsAre("coco/1.jpg"));
  EXPECT_EQ(spelled(got->conversation), "system: [Be short.] | user: <i> [What is this?] | assistant: [A bus.] | user: [Its colour?] | assistant: [Red.]");
}

TEST(ParseRecord, ReadsShareGptWithListsOfPicturesAndVideos) {
  const auto got = parse_record(R"({"id": 12, "conversations": [{"from": "human", "value": "A: <image> B: <image>, then <video>?"}, {"from": "gpt", "value": "Yes."}],
    "images": ["a.png", "b.png"], "videos": ["clip"]})", "f:1");
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->id, "12");
  EXPECT_THAT(names_of(got->pictures), ::testing::ElementsAre("a.png", "b.png"));
  ASSERT_EQ(got->videos.size(), 1U);
  EXPECT_EQ(got->videos[0].folder, "clip");
  EXPECT_EQ(spelled(got->conversation), "user: [A: ] <i> [ B: ] <i> [, then ] <v> [?] | assistant: [Yes.]");
}

TEST(ParseRecord, TakesPicturesFromPartsAndFromTheListInTheOrderShown) {
  const auto got = parse_record(R"({"messages": [{"role": "user", "content": [{"type": "image", "image": "own.png"}, {"type": "image"}, {"type": "text", "text": "and"},
    {"type": "image_url", "image_url": {"url": "file:///third.png"}}, {"type": "video", "video": ["1.png", "2.png"], "fps": 0.5}]}, {"role": "assistant", "content": "ok"}],
    "images": ["listed.png"]})", "f:1");
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_THAT(names_of(got->pictures), ::testing::ElementsAre("own.png", "listed.png", "file:///third.png"));
  ASSERT_EQ(got->videos.size(), 1U);
  EXPECT_THAT(names_of(got->videos[0].frames), ::testing::ElementsAre("1.png", "2.png"));
  EXPECT_EQ(got->videos[0].frames_per_second, 0.5);
  EXPECT_EQ(spelled(got->conversation), "user: <i> <i> [and] <i> <v> | assistant: [ok]");
}

TEST(ParseRecord, LineBreaksThatTouchAPlaceholderAreNotationUnlessKept) {
  const std::string json = R"({"image": ["a", "b"], "conversations": [{"from": "human", "value": "First\n<image>\r\n<image>\n\nSecond\n"}]})";
  EXPECT_EQ(spelled(parse_record(json, "f:1")->conversation), "user: [First] <i> <i> [\nSecond\n]");
  EXPECT_EQ(spelled(parse_record(json, "f:1", {.line_breaks = LineBreaks::kKeep})->conversation), "user: [First\n] <i> [\r\n] <i> [\n\nSecond\n]");
}

TEST(ParseRecord, ReadsTextOnly) {
  const auto got = parse_record(R"({"image": null, "conversations": [{"from": "human", "value": "2 + 2?"}, {"from": "gpt", "value": "4"}]})", "f:1");
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_TRUE(got->pictures.empty());
  EXPECT_EQ(spelled(got->conversation), "user: [2 + 2?] | assistant: [4]");
}

TEST(ParseRecord, PicturesFromElsewhereReplaceTheNames) {
  const auto got = parse_record(R"({"image": "lost.png", "messages": [{"role": "user", "content": [{"type": "image", "image": "lost too.png"}]}]})", "f:1", {{"in the tar", "bytes"}}, {});
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_THAT(names_of(got->pictures), ::testing::ElementsAre("in the tar"));
}

TEST(ParseRecord, CountsThatDifferAreAMismatchWithBothNumbers) {
  expect_refused(R"({"image": "a", "conversations": [{"from": "human", "value": "<image>"}, {"from": "gpt", "value": "a"}, {"from": "human", "value": "<image> <image>"}]})",
                 "for each <image>: the conversation holds 3 (in turn 0, 2, 2), the record lists 1", Errc::kMismatch);
  expect_refused(R"({"images": ["a", "b"], "messages": [{"role": "user", "content": "hi"}]})", "the conversation holds 0, the record lists 2", Errc::kMismatch);
  expect_refused(R"({"messages": [{"role": "user", "content": "<video>"}]})", "for each <video>", Errc::kMismatch);
}

TEST(ParseRecord, RefusesWrongTypesAndUnknownForms) {
  const std::string turn = R"({"from": "human", "value": "x"})";
  expect_refused("[]", "expected a JSON object, got an array");
  expect_refused(R"({"id": 1.5, "messages": []})", "'id'");
  expect_refused(R"({"id": "a"})", "neither");
  expect_refused(R"({"conversations": [)" + turn + R"(], "messages": [1]})", "both 'conversations' and 'messages'");
  expect_refused(R"({"conversations": []})", "at least one turn");
  expect_refused(R"({"conversations": "hello"})", "got \"hello\"");
  expect_refused(R"({"conversations": [)" + turn + ", 7]}", "turn 1 must be an object, got 7");
  expect_refused(R"({"conversations": [{"from": "tool", "value": "x"}]})", "unknown speaker \"tool\"");
  expect_refused(R"({"conversations": [{"from": "human"}]})", "neither");
  expect_refused(R"({"conversations": [{"from": "human", "value": 3}]})", "string or a list of parts, got 3");
  expect_refused(R"({"messages": [{"role": "user", "content": [{"type": "audio"}]}]})", "unknown type of a content part \"audio\"");
  expect_refused(R"({"messages": [{"role": "user", "content": [{"type": "text"}]}]})", "string 'text'");
  expect_refused(R"({"messages": [{"role": "user", "content": [{"type": "video", "video": "v", "fps": 0}]}]})", "'fps'");
  expect_refused(R"({"image": 5, "conversations": [)" + turn + "]}", "'image' must name a file, got 5");
  expect_refused(R"({"image": "", "conversations": [)" + turn + "]}", "'image' must name a file");
  expect_refused(R"({"videos": [[]], "conversations": [)" + turn + "]}", "list of frames");
}

TEST(ParseRecord, BrokenJsonAndBrokenUtf8NameTheLine) {
  expect_refused(R"({"messages": [)", "is no valid JSON");
  expect_refused("{\"messages\": [{\"role\": \"user\", \"content\": \"\xff\"}]}", "UTF-8");
  expect_refused("{\"id\": \"\xc3\"}", "UTF-8");
  expect_refused(R"({"id": "a"} {})", "is no valid JSON");
  expect_refused("", "is no valid JSON");
  expect_refused(std::string(100000, '['), "is no valid JSON");
  // a message stays short, however long the line
  EXPECT_LT(parse_record("{\"id\": \"" + std::string(1 << 20, 'x'), "f:1").error().message.size(), 400U);
}

}  // namespace
}  // namespace qwen_vl
