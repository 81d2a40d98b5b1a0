#include "data.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "picture.hpp"
#include "pictures.hpp"

namespace stamps {
namespace {

using ::testing::HasSubstr;
using test::Folder;
using troupe::Errc;

TEST(Dataset, EveryInstalledStampDecodes) {
  if (!std::filesystem::exists(test::kInstalled)) GTEST_SKIP() << "tuxpaint-stamps-default is not installed: run tools/setup";
  const auto data = load_dataset(test::kInstalled);
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ(data->train.size() + data->held_out.size(), 796U);
  EXPECT_EQ(data->shortened, 0);
  for (const auto* part : {&data->train, &data->held_out}) {
    for (const auto& example : *part) {
      const auto picture = load_picture(example.picture);
      ASSERT_TRUE(picture) << picture.error().message;
      EXPECT_GE(example.tokens.size(), 3U) << example.picture;
    }
  }
}

TEST(Dataset, HoldsOutAboutATenthAndTheSameEachTime) {
  Folder folder;
  test::write_stamps(folder, 99);
  const auto first = load_dataset(folder.path());
  const auto again = load_dataset(folder.path());
  ASSERT_TRUE(first && again);
  EXPECT_EQ(first->train.size() + first->held_out.size(), 99U);
  EXPECT_GT(first->held_out.size(), 2U);
  EXPECT_LT(first->held_out.size(), 25U);
  for (std::size_t i = 0; i < first->held_out.size(); ++i) EXPECT_EQ(first->held_out[i].picture, again->held_out[i].picture);
}

TEST(Dataset, MirrorHasTheCaptionAndTheSideOfItsOriginal) {
  Folder folder;
  test::write_stamps(folder, 60);
  for (int i = 10; i < 60; ++i) test::write(folder / (std::to_string(i) + "_mirror.png"), test::plain_png({}));
  test::write(folder / "nobody.png", test::plain_png({}));
  const auto data = load_dataset(folder.path());
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ(data->train.size() + data->held_out.size(), 110U);
  EXPECT_EQ(data->without_caption, 1);
  for (const auto& example : data->held_out) {
    if (!example.picture.ends_with("_mirror.png")) continue;
    std::string original = example.picture;
    original.replace(original.find("_mirror"), 7, "");
    EXPECT_TRUE(std::ranges::any_of(data->held_out, [&](const Example& other) { return other.picture == original && other.caption == example.caption; })) << original;
  }
}

TEST(Dataset, WordsSeenOnceAreUnknown) {
  Folder folder;
  test::write_stamps(folder, 40);
  test::write(folder / "00.txt", "A Zebra\xE2\x80\x99s square, 25!\n");
  const auto data = load_dataset(folder.path());
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_THAT(data->words, ::testing::IsSupersetOf({"a", "red", "square", "large"}));
  EXPECT_THAT(data->words, ::testing::Not(::testing::Contains("zebra")));
  const auto in = [](const std::vector<Example>& all) { return std::ranges::find_if(all, [](const Example& one) { return one.picture.ends_with("00.png"); }); };
  const auto& changed = in(data->train) != data->train.end() ? *in(data->train) : *in(data->held_out);
  EXPECT_THAT(caption_of(data->words, changed.tokens), HasSubstr("a <unknown>"));
}

TEST(Dataset, MissingFolderIsIo) {
  const auto data = load_dataset("/nowhere/stamps");
  ASSERT_FALSE(data);
  EXPECT_EQ(data.error().code, Errc::kIo);
  EXPECT_THAT(data.error().message, HasSubstr("/nowhere/stamps"));
}

TEST(Dataset, FolderWithoutCaptionedPicturesIsBadData) {
  Folder folder;
  test::write(folder / "a.png", test::plain_png({}));
  const auto data = load_dataset(folder.path());
  ASSERT_FALSE(data);
  EXPECT_EQ(data.error().code, Errc::kBadData);
  EXPECT_THAT(data.error().message, HasSubstr(folder.path()));
}

// four specials and two words: counts 1 + {.., 4 ends, 4 a, 4 b} by hand
TEST(Dataset, UnigramLossIsTheClosedForm) {
  Dataset data;
  data.words = {"<pad>", "<begin>", "<end>", "<unknown>", "a", "b"};
  data.train.assign(4, {"", "", {kBegin, 4, 5, kEnd}});
  data.held_out.assign(1, {"", "", {kBegin, 4, kUnknown, kEnd}});
  EXPECT_NEAR(unigram_loss(data), -(std::log(5.0 / 18) * 2 + std::log(1.0 / 18)) / 3, 1e-12);
}

}  // namespace
}  // namespace stamps
