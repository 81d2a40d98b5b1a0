// Broken, truncated and empty pictures are typed errors that name the file (issue 3, "Bad input").
#include "picture.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pictures.hpp"

namespace stamps {
namespace {

using ::testing::HasSubstr;
using test::Folder;
using troupe::Errc;

void expect_bad(const std::string& path, const std::string& says) {
  const auto picture = load_picture(path);
  ASSERT_FALSE(picture) << path;
  EXPECT_EQ(picture.error().code, Errc::kBadData) << picture.error().message;
  EXPECT_THAT(picture.error().message, HasSubstr(path));
  EXPECT_THAT(picture.error().message, HasSubstr(says));
}

TEST(Picture, MissingFileIsIoAndNamesIt) {
  const auto picture = load_picture("/nowhere/a.png");
  ASSERT_FALSE(picture);
  EXPECT_EQ(picture.error().code, Errc::kIo);
  EXPECT_THAT(picture.error().message, HasSubstr("/nowhere/a.png"));
}

TEST(Picture, EmptyFileIsBadData) {
  Folder folder;
  test::write(folder / "a.png", "");
  expect_bad(folder / "a.png", "expected a PNG, got 0 bytes");
}

TEST(Picture, OtherFormatIsBadData) {
  Folder folder;
  test::write(folder / "a.png", "<svg xmlns='http://www.w3.org/2000/svg'/>");
  expect_bad(folder / "a.png", "got something else");
}

TEST(Picture, TruncatedAnywhereIsBadData) {
  Folder folder;
  auto bytes = test::plain_png({.red = 200});
  while (bytes.size() > 1) {
    bytes.pop_back();
    test::write(folder / "a.png", bytes);
    expect_bad(folder / "a.png", "expected");
  }
}

TEST(Picture, AnyChangedByteIsBadData) {
  Folder folder;
  const auto good = test::plain_png({.red = 200});
  for (std::size_t i = 0; i < good.size(); ++i) {
    auto bytes = good;
    bytes[i] ^= 0x10;
    test::write(folder / "a.png", bytes);
    expect_bad(folder / "a.png", "a.png");
  }
}

TEST(Picture, TransparentIsWhite) {
  Folder folder;
  test::write(folder / "a.png", test::plain_png({.red = 10, .green = 20, .blue = 30, .alpha = 0}));
  const auto picture = load_picture(folder / "a.png");
  ASSERT_TRUE(picture) << picture.error().message;
  EXPECT_TRUE(std::ranges::all_of(*picture, [](int value) { return value == 255; }));
}

TEST(Picture, KeepsTheMeanWhenItShrinks) {
  Folder folder;
  test::write(folder / "a.png", test::png(640, 640, [](int x, int) { return x < 320 ? test::Color{0, 0, 0} : test::Color{200, 100, 50}; }));
  const auto picture = load_picture(folder / "a.png");
  ASSERT_TRUE(picture) << picture.error().message;
  EXPECT_EQ((*picture)[0], 0);
  EXPECT_EQ((*picture)[3 * (kSide - 1)], 200);
  EXPECT_EQ((*picture)[3 * (kSide - 1) + 2], 50);
}

// `sp` may cut after any four rows: those must be the 2 x 2 patches that become one token
TEST(Picture, FourRowsAreOneMergeUnit) {
  Picture picture{};
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) picture[static_cast<std::size_t>((y * kSide + x) * 3)] = static_cast<std::uint8_t>(255 - (y / kPatch * kGrid + x / kPatch));
  }
  std::vector<float> rows;
  append_patches(picture, {}, rows);
  ASSERT_EQ(rows.size(), static_cast<std::size_t>(kPatches * kPatchSize));
  const auto patch = [&](int row) { return static_cast<int>(rows[static_cast<std::size_t>(row * kPatchSize)] * 64); };
  EXPECT_EQ((std::vector<int>{patch(0), patch(1), patch(2), patch(3)}), (std::vector<int>{0, 1, kGrid, kGrid + 1}));
  EXPECT_EQ((std::vector<int>{patch(4), patch(5), patch(6), patch(7)}), (std::vector<int>{2, 3, kGrid + 2, kGrid + 3}));
  EXPECT_EQ(patch(kPatches - 1), kPatches - 1);
}

TEST(Picture, ShiftMovesWhiteIn) {
  Picture picture{};  // black
  std::vector<float> rows;
  append_patches(picture, {.down = kSide, .right = 0}, rows);
  EXPECT_TRUE(std::ranges::all_of(rows, [](float ink) { return ink == 0; }));
}

}  // namespace
}  // namespace stamps
