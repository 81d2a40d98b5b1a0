// UTF-8 as it comes, and normalization as Hugging Face's tokenizers do it.
#include "byte_level.hpp"
#include "support.hpp"
#include "unicode.hpp"

namespace qwen_vl {
namespace {

TEST(Utf8, EachIllFormedStretchBecomesOneReplacement) {
  // Wanted: what Python's bytes.decode("utf-8", "replace") gives.
  const std::string r = "\uFFFD";
  EXPECT_EQ(repair_utf8("a\xFFz"), "a" + r + "z");
  EXPECT_EQ(repair_utf8("\xE2\x82"), r) << "a character cut short";
  EXPECT_EQ(repair_utf8("\xE2\x82z"), r + "z");
  EXPECT_EQ(repair_utf8("\xED\xA0\x80"), r + r + r) << "a surrogate";
  EXPECT_EQ(repair_utf8("\xF0\x9F\x98\xF0\x9F\x98\x80"), r + "\U0001F600");
  EXPECT_EQ(repair_utf8("\xC0\xAF"), r + r) << "an overlong slash";
  EXPECT_EQ(repair_utf8("\xF4\x90\x80\x80"), r + r + r + r) << "past U+10FFFF";
  EXPECT_EQ(repair_utf8("plain \u00e9"), "plain \u00e9");
  for (const char* bad : {"\xFF", "\xE2\x82", "\xED\xA0\x80", "\xC0\xAF", "\xF4\x90\x80\x80", "a\x80"}) EXPECT_FALSE(is_utf8(bad));
}

TEST(Utf8, RepairOfAnyBytesIsWellFormed) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 24, ' ');
    for (char& c : bytes) c = static_cast<char>(random() % 3 ? 0x80 + random() % 128 : random() % 256);
    const std::string repaired = repair_utf8(bytes);
    EXPECT_TRUE(is_utf8(repaired));
    EXPECT_EQ(is_utf8(bytes), repaired == bytes);
  }
}

TEST(Nfc, ComposesAndOrdersMarks) {
  EXPECT_EQ(to_nfc("e\u0301"), "\u00e9");
  EXPECT_EQ(to_nfc("\u212b"), "\u00c5");
  EXPECT_EQ(to_nfc("q\u0307\u0323"), "q\u0323\u0307");
  EXPECT_EQ(to_nfc("\u1100\u1161\u11a8"), "\uac01");
  EXPECT_EQ(to_nfc("\u0958"), "\u0915\u093c") << "excluded from composition";
}

TEST(Nfc, MarksYoungerThanUnicode9StayWhereTheyAre) {
  EXPECT_EQ(to_nfc("a\u08d3\u0301"), "a\u08d3\u0301") << "U+08D3 came with Unicode 11; today's NFC composes a and the acute over it";
  EXPECT_EQ(to_nfc("a\u0301\u1df6\u0323"), "\u00e1\u1df6\u0323");
}

TEST(Nfc, LongTextIsCutOnlyWhereNothingJoins) {
  std::string text, wanted;
  for (int i = 0; i < 300000; ++i) text += i % 7 ? "e\u0301" : "e\u0301 ", wanted += i % 7 ? "\u00e9" : "\u00e9 ";
  EXPECT_EQ(to_nfc(text), wanted);
  std::string marks(3 << 20, 'x');
  for (std::size_t at = (1 << 20) - 1; at + 3 < marks.size(); at += 1 << 20) marks.replace(at, 3, "e\u0301");
  EXPECT_EQ(to_nfc(marks).size(), marks.size() - 2) << "an accent behind the wanted cut still joins its letter";
}

TEST(ByteLevel, IsABijectionOfBytesAndPrintableText) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const std::string shown = to_byte_level(all);
  EXPECT_TRUE(is_utf8(shown));
  EXPECT_EQ(from_byte_level(shown), all);
  EXPECT_EQ(to_byte_level(" the\n"), "\u0120the\u010a");
  EXPECT_EQ(byte_order()[0], '!');
  EXPECT_EQ(byte_order()[255], 173);
  for (const char* none : {" ", "\u0144", "\u4e00", "\xC4", "\u00ad", "\x01", "\xC4z"}) EXPECT_FALSE(from_byte_level(none)) << none;
}

TEST(Base64, ReadsWhatIsStandard) {
  EXPECT_EQ(from_base64("IQ=="), "!");
  EXPECT_EQ(from_base64("aGVsbG8="), "hello");
  EXPECT_EQ(from_base64("/+9h"), "\xff\xef" "a");
  for (const char* none : {"", "IQ", "IQ=", "I===", "====", "I Q=", "=IQ=", "IQ=!"}) EXPECT_FALSE(from_base64(none)) << none;
}

}  // namespace
}  // namespace qwen_vl
