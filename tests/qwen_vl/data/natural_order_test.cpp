#include "natural_order.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qwen_vl {
namespace {

TEST(NaturalOrder, CountsNumbersByValue) {
  std::vector<std::string> names = {"f10.png", "f2.png", "f02.png", "f1.png", "f", "e99", "f00000000000000000000000000000003.png", "f2b.png"};
  std::ranges::sort(names, in_natural_order);
  EXPECT_THAT(names, ::testing::ElementsAre("e99", "f", "f1.png", "f02.png", "f2.png", "f2b.png", "f00000000000000000000000000000003.png", "f10.png"));
  EXPECT_FALSE(in_natural_order("a1", "a1"));
}

TEST(PictureExtension, KnowsWhatIsDecoded) {
  for (const char* yes : {".png", ".JPG", "jpeg", "Bmp"}) EXPECT_TRUE(is_picture_extension(yes)) << yes;
  for (const char* no : {"", ".", ".webp", ".txt", "png.txt"}) EXPECT_FALSE(is_picture_extension(no)) << no;
}

}  // namespace
}  // namespace qwen_vl
