// The forms on disk give one tokenizer, and a broken file is refused by file and entry.
#include "byte_level.hpp"
#include "support.hpp"

namespace qwen_vl {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using test::Folder;
using test::small;
using troupe::Errc;

json saved() {
  const Folder folder;
  troupe::or_throw(small().save(folder / "t.json"));
  return json::parse(test::read(folder / "t.json"));
}

void expect_refused(const std::string& bytes, Errc code, const ::testing::Matcher<const std::string&>& message) {
  const auto tokenizer = Tokenizer::parse_json(bytes, "dir/t.json");
  ASSERT_FALSE(tokenizer);
  EXPECT_EQ(tokenizer.error().code, code) << tokenizer.error().message;
  EXPECT_THAT(tokenizer.error().message, AllOf(::testing::StartsWith("dir/t.json: "), message));
}
void expect_refused(const json& document, Errc code, const ::testing::Matcher<const std::string&>& message) { expect_refused(document.dump(), code, message); }

std::string key_of(const Tokenizer& tokenizer, std::int64_t id) { return to_byte_level(troupe::or_throw(tokenizer.bytes_of(id))); }

/// vocab.json, merges.txt and tokenizer_config.json of `tokenizer`.
void write_parts(const Folder& folder, const Tokenizer& tokenizer) {
  json vocabulary, decoder;
  std::string merges = "#version: 0.2\n";
  const TokenizerParts& parts = tokenizer.parts();
  for (std::int64_t id = 0; id < parts.added.front().id; ++id) vocabulary[key_of(tokenizer, id)] = id;
  for (const Merge& merge : parts.merges) merges += key_of(tokenizer, merge.left) + " " + key_of(tokenizer, merge.right) + "\n";
  for (const AddedToken& token : parts.added) decoder[std::to_string(token.id)] = {{"content", token.content}, {"special", token.special}, {"normalized", false}};
  test::write(folder / "vocab.json", vocabulary.dump());
  test::write(folder / "merges.txt", merges);
  test::write(folder / "tokenizer_config.json", json{{"tokenizer_class", "Qwen2Tokenizer"}, {"added_tokens_decoder", decoder}}.dump());
}

bool same(const Tokenizer& a, TokenizerParts b) {
  TokenizerParts first = a.parts();
  for (auto* parts : {&first, &b}) std::sort(parts->added.begin(), parts->added.end(), [](const auto& x, const auto& y) { return x.id < y.id; });
  return first == b;
}

TEST(Load, WhatSaveWroteIsTheSameTokenizer) {
  const Folder folder;
  troupe::or_throw(small().save(folder.path()));
  for (const std::string& path : {folder.path(), folder / "tokenizer.json"}) {
    const auto again = Tokenizer::load(path);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_TRUE(same(*again, small().parts()));
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "tokenizer.json.part"));
}

TEST(Load, EverySplitAndOptionSurvivesSaving) {
  for (const Split split : {Split::kQwen2, Split::kCl100k, Split::kGpt2}) {
    TokenizerParts parts = small().parts();
    parts.split = split;
    parts.normalize = split == Split::kQwen2;
    parts.whole_first = split == Split::kCl100k;
    const Folder folder;
    troupe::or_throw(troupe::or_throw(Tokenizer::make(parts, "test")).save(folder / "x.json"));
    EXPECT_TRUE(same(troupe::or_throw(Tokenizer::load(folder / "x.json")), parts));
  }
}

TEST(Load, MergesMayBeTextOrPairs) {
  json document = saved();
  for (json& merge : document["model"]["merges"]) merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  EXPECT_TRUE(same(troupe::or_throw(Tokenizer::parse_json(document.dump(), "t")), small().parts()));
}

TEST(Load, VocabularyWithMergesIsTheSameTokenizer) {
  const Folder folder;
  write_parts(folder, small());
  const auto tokenizer = Tokenizer::load(folder.path());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_TRUE(same(*tokenizer, small().parts()));
}

TEST(Load, AddedTokensJsonIsReadToo) {
  const Folder folder;
  write_parts(folder, small());
  json added;
  const Tokenizer tokens = small();
  for (const AddedToken& token : tokens.parts().added) added[token.content] = token.id;
  test::write(folder / "tokenizer_config.json", "{}");
  test::write(folder / "added_tokens.json", added.dump());
  const auto tokenizer = Tokenizer::load(folder / "vocab.json");
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->encode("the<|im_end|>"), small().encode("the<|im_end|>"));
}

TEST(Load, Gpt2ClassMeansItsPatternAndNoNormalization) {
  const Folder folder;
  write_parts(folder, small());
  test::write(folder / "tokenizer_config.json", R"({"tokenizer_class": "GPT2Tokenizer"})");
  const auto tokenizer = Tokenizer::load(folder.path());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->parts().split, Split::kGpt2);
  EXPECT_FALSE(tokenizer->parts().normalize);
  test::write(folder / "tokenizer_config.json", R"({"tokenizer_class": "T5Tokenizer"})");
  const auto other = Tokenizer::load(folder.path());
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Errc::kUnavailable);
  EXPECT_THAT(other.error().message, AllOf(HasSubstr("tokenizer_config.json"), HasSubstr("T5Tokenizer")));
}

TEST(Load, RanksGiveEveryPairThatMakesAToken) {
  std::string ranks;
  const std::string base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (std::size_t byte = 0; byte < 256; ++byte) ranks += std::string{base64[byte >> 2], base64[(byte & 3) << 4]} + "== " + std::to_string(byte) + "\n";
  const Folder folder;
  test::write(folder / "x.tiktoken", ranks + "YWE= 256\nYWFh 257\r\n");   // aa, aaa
  const auto tokenizer = Tokenizer::load(folder.path(), {.added = {{.content = "<x>"}}});
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->parts().merges, (std::vector<Merge>{{'a', 'a', 256}, {'a', 256, 257}, {256, 'a', 257}}));
  EXPECT_EQ(tokenizer->encode("aaa<x>"), (std::vector<std::int64_t>{257, 258}));
  const auto refused = [&](const std::string& text, const std::string& message) {
    test::write(folder / "x.tiktoken", text);
    const auto broken = Tokenizer::load(folder / "x.tiktoken");
    ASSERT_FALSE(broken);
    EXPECT_EQ(broken.error().code, Errc::kBadData);
    EXPECT_THAT(broken.error().message, AllOf(HasSubstr("x.tiktoken"), HasSubstr(message)));
  };
  refused(ranks + "YWE= 257\n", "line 257: expected rank 256, got 257");
  refused(ranks + "YW!= 256\n", "line 257: expected 'base64 rank'");
  refused(ranks + "YWE=256\n", "line 257");
  refused(ranks + "YWE= 256x\n", "line 257");
  refused(ranks + "QQ== 256\n", "the same token 'A'");
  refused("IQ== 0\n", "no token for the byte 0");
  refused("", "no token for the byte 0");
}

TEST(Load, MissingFilesAreNamed) {
  const Folder folder;
  const auto none = Tokenizer::load(folder / "none.json");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Errc::kIo);
  EXPECT_THAT(none.error().message, HasSubstr("none.json"));
  const auto empty = Tokenizer::load(folder.path());
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().code, Errc::kIo);
  EXPECT_THAT(empty.error().message, AllOf(HasSubstr(folder.path()), HasSubstr("tokenizer.json")));
  test::write(folder / "vocab.json", "{}");
  const auto half = Tokenizer::load(folder.path());
  ASSERT_FALSE(half);
  EXPECT_THAT(half.error().message, HasSubstr("merges.txt"));
  const auto unwritable = small().save(folder / "no" + std::string("/such/folder.json"));
  ASSERT_FALSE(unwritable);
  EXPECT_EQ(unwritable.error().code, Errc::kIo);
}

TEST(Load, BrokenMergesTextNamesTheLine) {
  const Folder folder;
  write_parts(folder, small());
  for (const char* line : {"zz qq", "a", "a  b", "a b c", " ab"}) {
    test::write(folder / "merges.txt", std::string("#version: 0.2\nt h\n") + line + "\n");
    const auto broken = Tokenizer::load(folder.path());
    ASSERT_FALSE(broken) << line;
    EXPECT_EQ(broken.error().code, Errc::kBadData);
    EXPECT_THAT(broken.error().message, AllOf(HasSubstr("merges.txt"), HasSubstr("line 3")));
  }
}

TEST(BrokenJson, TruncatedOrNoJson) {
  const std::string whole = saved().dump();
  expect_refused(whole.substr(0, whole.size() / 2), Errc::kBadData, HasSubstr("parse error"));
  expect_refused(std::string(), Errc::kBadData, HasSubstr("parse error"));
  expect_refused(std::string("[1, 2]"), Errc::kBadData, HasSubstr("expected an object, got array"));
  expect_refused(std::string("{}"), Errc::kBadData, HasSubstr("no model"));
  expect_refused(std::string(100000, '['), Errc::kBadData, HasSubstr("parse error"));
  expect_refused(std::string("{\"a\": \"\xFF\"}"), Errc::kBadData, HasSubstr("UTF-8"));
}

TEST(BrokenJson, IdsThatRepeatOrLeaveGaps) {
  json document = saved();
  document["model"]["vocab"]["a"] = document["model"]["vocab"]["b"];
  expect_refused(document, Errc::kBadData, AllOf(HasSubstr("'a'"), HasSubstr("'b'"), HasSubstr("both have id")));
  document = saved();
  document["model"]["vocab"].erase("a");
  document["model"]["merges"] = json::array();
  expect_refused(document, Errc::kBadData, HasSubstr("no token has id " + std::to_string(*small().id_of("a"))));
  document = saved();
  document["added_tokens"].back()["id"] = 1000000;
  expect_refused(document, Errc::kBadData, AllOf(HasSubstr("no token has id 321"), HasSubstr("'<|file_sep|>' with id 1000000")));
  document = saved();
  document["added_tokens"][1]["id"] = document["added_tokens"][0]["id"];
  expect_refused(document, Errc::kBadData, AllOf(HasSubstr("<|endoftext|>"), HasSubstr("<|im_start|>")));
  for (const json& id : {json(-1), json(1.5), json("7"), json(nullptr), json(18446744073709551615ull), json(1ll << 40)}) {
    document = saved();
    document["model"]["vocab"]["a"] = id;
    expect_refused(document, Errc::kBadData, HasSubstr("'a'"));
  }
}

TEST(BrokenJson, MergesThatNameNoToken) {
  json document = saved();
  document["model"]["merges"][2] = {"zz", "q"};
  expect_refused(document, Errc::kBadData, AllOf(HasSubstr("model.merges[2]"), HasSubstr("'zz' is no token")));
  document["model"]["merges"][2] = "q z";
  expect_refused(document, Errc::kBadData, AllOf(HasSubstr("model.merges[2]"), HasSubstr("'qz' is no token")));
  for (const json& merge : {json("ab"), json("a b c"), json(7), json::array({"a"}), json::array({"a", 1})}) {
    document["model"]["merges"][2] = merge;
    expect_refused(document, Errc::kBadData, HasSubstr("model.merges[2]"));
  }
  document = saved();
  document["model"]["merges"].push_back(document["model"]["merges"][0]);
  expect_refused(document, Errc::kBadData, HasSubstr("merged twice"));
}

TEST(BrokenJson, WrongTypes) {
  for (const char* pointer : {"/model", "/model/vocab", "/model/merges", "/added_tokens", "/added_tokens/1", "/added_tokens/1/content", "/added_tokens/1/id",
                              "/added_tokens/1/special", "/pre_tokenizer/pretokenizers/0/pattern", "/pre_tokenizer/pretokenizers/0/pattern/Regex", "/model/ignore_merges"}) {
    for (const json& value : {json(3), json::array({1, json::object()}), json("x"), json::object()}) {
      json document = saved();
      if (document[json::json_pointer(pointer)].type() == value.type()) continue;
      document[json::json_pointer(pointer)] = value;
      const auto tokenizer = Tokenizer::parse_json(document.dump(), "dir/t.json");
      if (tokenizer && std::string(pointer) == "/added_tokens/1/special") continue;
      ASSERT_FALSE(tokenizer) << pointer << " " << value;
      EXPECT_THAT(tokenizer.error().message, ::testing::StartsWith("dir/t.json: "));
    }
  }
}

TEST(BrokenJson, TokensOutsideTheAlphabet) {
  json document = saved();
  document["model"]["vocab"]["a\u4e00"] = 322;
  expect_refused(document, Errc::kBadData, AllOf(HasSubstr("'a\u4e00'"), HasSubstr("byte-level alphabet")));
  document["added_tokens"].push_back({{"id", 322}, {"content", "a\u4e00"}, {"special", true}});
  EXPECT_TRUE(Tokenizer::parse_json(document.dump(), "t")) << "added tokens may be in the vocabulary as they are";
  document["added_tokens"].back()["id"] = 323;
  expect_refused(document, Errc::kBadData, AllOf(HasSubstr("has id 323"), HasSubstr("322 in the vocabulary")));
}

TEST(BrokenJson, WhatThisProgramHasNotIsQuoted) {
  const auto with = [](const char* pointer, const json& value) {
    json document = saved();
    document[json::json_pointer(pointer)] = value;
    return document;
  };
  expect_refused(with("/model/type", "Unigram"), Errc::kUnavailable, HasSubstr("Unigram"));
  expect_refused(with("/pre_tokenizer/pretokenizers/0/pattern/Regex", "\\p{L}+|\\d+"), Errc::kUnavailable, HasSubstr(R"(\\p{L}+|\\d+)"));
  expect_refused(with("/pre_tokenizer/pretokenizers/0/behavior", "Removed"), Errc::kUnavailable, HasSubstr("Removed"));
  expect_refused(with("/pre_tokenizer/pretokenizers/0/invert", true), Errc::kUnavailable, HasSubstr("invert"));
  expect_refused(with("/pre_tokenizer/pretokenizers/1/use_regex", true), Errc::kUnavailable, HasSubstr("use_regex"));
  expect_refused(with("/pre_tokenizer/pretokenizers/1/add_prefix_space", true), Errc::kUnavailable, HasSubstr("add_prefix_space"));
  expect_refused(with("/pre_tokenizer", {{"type", "Whitespace"}}), Errc::kUnavailable, HasSubstr("Whitespace"));
  expect_refused(with("/pre_tokenizer", nullptr), Errc::kUnavailable, HasSubstr("pre_tokenizer"));
  expect_refused(with("/normalizer", {{"type", "NFKC"}}), Errc::kUnavailable, HasSubstr("NFKC"));
  expect_refused(with("/decoder", {{"type", "Metaspace"}}), Errc::kUnavailable, HasSubstr("Metaspace"));
  expect_refused(with("/model/end_of_word_suffix", "</w>"), Errc::kUnavailable, HasSubstr("</w>"));
  expect_refused(with("/model/dropout", 0.1), Errc::kUnavailable, HasSubstr("0.1"));
  expect_refused(with("/added_tokens/3/lstrip", true), Errc::kUnavailable, AllOf(HasSubstr("added_tokens[3]"), HasSubstr("lstrip")));
}

TEST(BrokenJson, AByteWithoutAToken) {
  json document = saved();
  document["model"]["merges"] = json::array();
  const auto id = document["model"]["vocab"]["~"];
  document["model"]["vocab"].erase("~");
  document["model"]["vocab"]["~~~~"] = id;
  expect_refused(document, Errc::kBadData, AllOf(HasSubstr("byte 126"), HasSubstr("'~'")));
}

}  // namespace
}  // namespace qwen_vl
