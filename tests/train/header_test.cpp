#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <troupe/train/safetensors_header.hpp>

#include "files.hpp"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

Result<SafetensorsHeader> parse(const std::string& bytes) { return parse_safetensors_header(bytes, std::ssize(bytes), "a.safetensors"); }
Result<SafetensorsHeader> parse(std::string_view json, std::size_t data_bytes) { return parse(stored(json, data_bytes)); }

TEST(SafetensorsHeader, SaysWhereEachTensorIs) {
  const auto header = parse(R"({"__metadata__":{"format":"pt","a":"ü"},"b":{"dtype":"F32","shape":[2,3],"data_offsets":[2,26]},"a":{"shape":[],"dtype":"BF16","data_offsets":[0,2]},
                               "none":{"dtype":"F64","shape":[3,0],"data_offsets":[2,2]}}   )",
                            26);
  ASSERT_TRUE(header) << header.error().describe();
  EXPECT_THAT(header->metadata, ElementsAre(Pair("a", "ü"), Pair("format", "pt")));
  ASSERT_EQ(header->tensors.size(), 3U);
  const StoredTensor& b = header->tensors.at("b");
  EXPECT_EQ(b.dtype, "F32");
  EXPECT_THAT(b.shape, ElementsAre(2, 3));
  EXPECT_EQ(b.begin, header->data_begin + 2);
  EXPECT_EQ(b.bytes, 24);
  EXPECT_EQ(header->tensors.at("a").begin, header->data_begin);
  EXPECT_THAT(header->tensors.at("a").shape, ElementsAre());
  EXPECT_EQ(header->tensors.at("none").bytes, 0);
}

TEST(SafetensorsHeader, AnEmptyOneHasNoTensors) {
  const auto header = parse("{}", 0);
  ASSERT_TRUE(header) << header.error().describe();
  EXPECT_TRUE(header->tensors.empty());
}

struct Broken {
  const char* name;
  std::string json;
  std::size_t data_bytes;
  std::vector<const char*> says;   ///< Beside the file's name.
};

void PrintTo(const Broken& broken, std::ostream* out) { *out << broken.name; }

std::string entry(const char* dtype, const char* shape, const char* offsets) {
  return std::string(R"({"w":{"dtype":)") + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}

/// Not JSON as the format means it.
std::vector<Broken> broken_json() {
  return {
      {"NotJson", "hello", 0, {"must begin with '{'"}},
      {"Empty", "", 0, {"must begin with '{'"}},
      {"SpaceFirst", " {}", 0, {"must begin with '{'"}},
      {"ByteOrderMark", "\xef\xbb\xbf{}", 0, {"must begin with '{'"}},
      {"JsonCutShort", R"({"w":{"dtype":"F)", 0, {"is not JSON", "parse error"}},
      {"MoreBehind", "{}x", 0, {"is not JSON"}},
      {"Comment", "{/* */}", 0, {"is not JSON"}},
      {"NotUtf8", "{\"w\xff\":1}", 0, {"is not JSON", "ill-formed UTF-8"}},
      {"NumberTooLarge", R"({"w":1e999})", 0, {"is not JSON", "number overflow"}},
      {"TooDeep", R"({"w":[[[[[[[[[[1]]]]]]]]]]})", 0, {"nested deeper than 8"}},
  };
}

/// JSON that describes no tensors that could be.
std::vector<Broken> broken_entries() {
  const auto two = [](const char* first, const char* second) {
    return std::string(R"({"w":{"dtype":"U8","shape":[4],"data_offsets":)") + first + R"(},"x":{"dtype":"U8","shape":[4],"data_offsets":)" + second + "}}";
  };
  return {
      {"NoObject", R"({"w":7})", 0, {"tensor 'w'", "expected an object", "got 7"}},
      {"NoShape", R"({"w":{"dtype":"F32","data_offsets":[0,4]}})", 4, {"tensor 'w'", "expected an object with dtype, shape and data_offsets"}},
      {"UnknownDtype", entry(R"("F31")", "[1]", "[0,4]"), 4, {"tensor 'w'", "unknown dtype \"F31\""}},
      {"DtypeNotAString", entry("32", "[1]", "[0,4]"), 4, {"tensor 'w'", "unknown dtype 32"}},
      {"NegativeDim", entry(R"("F32")", "[-1]", "[0,4]"), 4, {"tensor 'w'", "shape must be a list of whole numbers, got [-1]"}},
      {"FractionalDim", entry(R"("F32")", "[1.0]", "[0,4]"), 4, {"tensor 'w'", "got [1.0]"}},
      {"ShapeNotAList", entry(R"("F32")", "1", "[0,4]"), 4, {"tensor 'w'", "got 1"}},
      {"ShapeOverflows", entry(R"("F32")", "[4294967296,4294967296]", "[0,0]"), 0, {"tensor 'w'", "overflows"}},
      {"StridesOverflow", entry(R"("F32")", "[0,4294967296,4294967296]", "[0,0]"), 0, {"tensor 'w'", "overflows"}},
      {"OneOffset", entry(R"("F32")", "[1]", "[0]"), 4, {"tensor 'w'", "data_offsets must be two whole numbers, got [0]"}},
      {"NegativeOffset", entry(R"("F32")", "[1]", "[-4,0]"), 4, {"tensor 'w'", "got [-4,0]"}},
      {"HugeOffset", entry(R"("F32")", "[1]", "[18446744073709551612,18446744073709551615]"), 4, {"tensor 'w'", "two whole numbers"}},
      {"OffsetsBackwards", entry(R"("F32")", "[1]", "[4,0]"), 4, {"tensor 'w'", "hold -4 bytes, dtype x shape needs 4"}},
      {"OffsetsTooShort", entry(R"("F32")", "[2]", "[0,4]"), 4, {"tensor 'w'", "hold 4 bytes, dtype x shape needs 8"}},
      {"PastTheEnd", entry(R"("F32")", "[2]", "[0,8]"), 7, {"tensor 'w'", "data_offsets end at 8, the file has 7 bytes of data", "cut short"}},
      {"Overlap", two("[0,4]", "[2,6]"), 6, {"tensor 'x'", "begin at 2, the one before ends at 4", "overlap"}},
      {"SamePlace", two("[0,4]", "[0,4]"), 4, {"begin at 0, the one before ends at 4"}},
      {"Hole", two("[0,4]", "[5,9]"), 9, {"tensor 'x'", "begin at 5, the one before ends at 4", "holes"}},
      {"HoleInFront", two("[1,5]", "[5,9]"), 9, {"tensor 'w'", "begin at 1, the one before ends at 0"}},
      {"MoreDataThanTensors", two("[0,4]", "[4,8]"), 9, {"have 8 bytes in all, the file has 9"}},
      {"DataOfNoTensor", "{}", 1, {"have 0 bytes in all, the file has 1"}},
      {"NameTwice", R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"w":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", 2, {"'w' occurs twice"}},
      {"KeyTwice", R"({"w":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}})", 1, {"'dtype' occurs twice"}},
      {"MetadataNotAnObject", R"({"__metadata__":"pt"})", 0, {"__metadata__ must be an object"}},
      {"MetadataNotAString", R"({"__metadata__":{"step":7}})", 0, {"__metadata__['step'] must be a string"}},
  };
}

class BrokenHeader : public ::testing::TestWithParam<Broken> {};

TEST_P(BrokenHeader, IsBadDataThatSaysWhatAndWhere) {
  const auto header = parse(GetParam().json, GetParam().data_bytes);
  ASSERT_FALSE(header);
  EXPECT_EQ(header.error().code, Errc::kBadData);
  EXPECT_THAT(header.error().message, HasSubstr("a.safetensors"));
  for (const char* part : GetParam().says) EXPECT_THAT(header.error().message, HasSubstr(part));
}

INSTANTIATE_TEST_SUITE_P(Json, BrokenHeader, ::testing::ValuesIn(broken_json()), [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Entries, BrokenHeader, ::testing::ValuesIn(broken_entries()), [](const auto& info) { return info.param.name; });

TEST(SafetensorsHeader, AFileCutAnywhereIsRefused) {
  const std::string whole = stored(R"({"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})", 24);
  ASSERT_TRUE(parse(whole));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto header = parse(whole.substr(0, size));
    ASSERT_FALSE(header) << size;
    EXPECT_EQ(header.error().code, Errc::kBadData);
    EXPECT_THAT(header.error().message, AllOf(HasSubstr("a.safetensors"), HasSubstr("cut short"))) << size;
  }
}

TEST(SafetensorsHeader, OnePast100MegabytesIsNotRead) {
  std::string bytes(8, '\0');
  const std::uint64_t length = 100'000'001;
  for (int i = 0; i < 8; ++i) bytes[static_cast<std::size_t>(i)] = static_cast<char>(length >> (8 * i) & 0xff);
  const auto header = parse_safetensors_header(bytes, std::int64_t{1} << 40, "a.safetensors");
  ASSERT_FALSE(header);
  EXPECT_EQ(header.error().code, Errc::kBadData);
  EXPECT_THAT(header.error().message, HasSubstr("claims 100000001 bytes; at most 100000000 are read"));
}

TEST(WeightMap, SaysWhichFileHasATensor) {
  const auto map = parse_weight_map(R"({"metadata":{"total_size":8},"weight_map":{"b":"two.safetensors","a":"one.safetensors"}})", "index.json");
  ASSERT_TRUE(map) << map.error().describe();
  EXPECT_THAT(*map, ElementsAre(Pair("a", "one.safetensors"), Pair("b", "two.safetensors")));
}

TEST(WeightMap, RefusesWhatItCannotMean) {
  const std::pair<const char*, const char*> cases[] = {
      {"[]", "must begin with '{'"},
      {R"({"weight_map":{"a":"x.safetensors",}})", "is not JSON"},
      {R"({"map":{}})", "'weight_map'"},
      {R"({"weight_map":[]})", "'weight_map'"},
      {R"({"weight_map":{"a":"x.safetensors","a":"y.safetensors"}})", "'a' occurs twice"},
      {R"({"weight_map":{"a":7}})", "weight_map['a'] must be the name of a file in the folder, got 7"},
      {R"({"weight_map":{"a":""}})", "got \"\""},
      {R"({"weight_map":{"a":"../x.safetensors"}})", "got \"../x.safetensors\""},
      {R"({"weight_map":{"a":".."}})", "got \"..\""},
      {R"({"weight_map":{"a":"x\u0000y"}})", "name of a file"},
  };
  for (const auto& [content, says] : cases) {
    const auto map = parse_weight_map(content, "index.json");
    ASSERT_FALSE(map) << content;
    EXPECT_EQ(map.error().code, Errc::kBadData);
    EXPECT_THAT(map.error().message, AllOf(HasSubstr("index.json"), HasSubstr(says)));
  }
}

}  // namespace
}  // namespace troupe
