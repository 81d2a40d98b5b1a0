// The split patterns walked by hand, against what their regular expressions say (checked with PyPI tokenizers 0.23.3).
#include "split.hpp"
#include "support.hpp"
#include "unicode.hpp"

namespace qwen_vl {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> pieces(Split split, std::string_view text) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = piece_end(split, text, begin);
    out.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return out;
}

TEST(Split, Qwen2TakesOneDigitCl100kThreeGpt2All) {
  EXPECT_THAT(pieces(Split::kQwen2, "a 12345"), ElementsAre("a", " ", "1", "2", "3", "4", "5"));
  EXPECT_THAT(pieces(Split::kCl100k, "a 12345"), ElementsAre("a", " ", "123", "45"));
  EXPECT_THAT(pieces(Split::kGpt2, "a 12345"), ElementsAre("a", " 12345"));
}

TEST(Split, OneForeignCharacterLeadsAWord) {
  EXPECT_THAT(pieces(Split::kQwen2, "(foo) \tbar"), ElementsAre("(foo", ")", " ", "\tbar"));
  EXPECT_THAT(pieces(Split::kQwen2, "((foo"), ElementsAre("((", "foo"));
  EXPECT_THAT(pieces(Split::kQwen2, "\nfoo"), ElementsAre("\n", "foo"));
  EXPECT_THAT(pieces(Split::kGpt2, "(foo) \tbar"), ElementsAre("(", "foo", ")", " ", "\t", "bar"));
}

TEST(Split, ContractionsFoldCaseAndTheLongS) {
  EXPECT_THAT(pieces(Split::kQwen2, "I'm he'LL 'Sx"), ElementsAre("I", "'m", " he", "'LL", " '", "Sx"));
  EXPECT_THAT(pieces(Split::kQwen2, "a'\u017ftb"), ElementsAre("a", "'\u017f", "tb"));
  EXPECT_THAT(pieces(Split::kGpt2, "he'LL we're"), ElementsAre("he", "'", "LL", " we", "'re"));
}

TEST(Split, LineEndsTakeTheSpaceBeforeThem) {
  EXPECT_THAT(pieces(Split::kQwen2, "a  \n \r\n  b"), ElementsAre("a", "  \n \r\n", " ", " b"));
  EXPECT_THAT(pieces(Split::kQwen2, "!\n\nb"), ElementsAre("!\n\n", "b"));
  EXPECT_THAT(pieces(Split::kGpt2, "a  \n  b"), ElementsAre("a", "  \n ", " b"));
}

TEST(Split, SpacesLeaveTheirLastToTheWordBehind) {
  EXPECT_THAT(pieces(Split::kQwen2, "   b"), ElementsAre("  ", " b"));
  EXPECT_THAT(pieces(Split::kQwen2, "   1"), ElementsAre("  ", " ", "1"));
  EXPECT_THAT(pieces(Split::kQwen2, "b   "), ElementsAre("b", "   "));
  EXPECT_THAT(pieces(Split::kQwen2, "a \u3000 b"), ElementsAre("a", " \u3000", " b"));
}

TEST(Split, PatternsAreKnownLetterByLetter) {
  for (const Split split : {Split::kQwen2, Split::kCl100k, Split::kGpt2}) EXPECT_EQ(split_of(pattern_of(split)), split);
  EXPECT_FALSE(split_of(R"(\p{L}+)"));
  EXPECT_FALSE(split_of(std::string(pattern_of(Split::kQwen2)) + " "));
}

TEST(Split, PiecesCoverAnyTextInOrder) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    const std::string text = test::random_text(random, random() % 60);
    for (const Split split : {Split::kQwen2, Split::kCl100k, Split::kGpt2}) {
      std::string joined;
      for (const auto& piece : pieces(split, text)) {
        EXPECT_TRUE(is_utf8(piece));
        joined += piece;
      }
      EXPECT_EQ(joined, text);
    }
  }
}

TEST(Split, AMegabyteOfWhiteSpaceTakesLinearTime) {
  EXPECT_EQ(pieces(Split::kQwen2, std::string(1 << 20, ' ') + "x").size(), 2u);
  std::string lines;
  for (int i = 0; i < 1 << 18; ++i) lines += " \n x";
  EXPECT_EQ(pieces(Split::kQwen2, lines).size(), 2u << 18);
}

}  // namespace
}  // namespace qwen_vl
