// Decoding: the bytes that Pillow makes, and files that are broken.
#include <filesystem>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "exif.hpp"
#include "golden_file.hpp"
#include "picture.hpp"

namespace qwen_vl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using test::content_of;

std::uint64_t hash_of(const std::vector<std::uint8_t>& bytes) {
  std::uint64_t out = 0xCBF29CE484222325ULL;
  for (const auto byte : bytes) out = (out ^ byte) * 0x100000001B3ULL;
  return out;
}

std::string refusal(const std::string& bytes) {
  const auto got = decode_picture(bytes, "a/b.png");
  if (got) return "decoded";
  EXPECT_EQ(got.error().code, troupe::Errc::kBadData);
  EXPECT_THAT(got.error().message, HasSubstr("a/b.png"));
  return got.error().message;
}

TEST(DecodePicture, GivesPillowsBytesForEachFormat) {
  const auto all = nlohmann::json::parse(content_of("cases.json")).at("decode");
  ASSERT_GE(all.size(), 20U);
  for (const auto& [name, expected] : all.items()) {
    const auto got = decode_picture(content_of("decode/" + name), name);
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(got->width, expected.at("width").get<std::int64_t>()) << name;
    EXPECT_EQ(got->height, expected.at("height").get<std::int64_t>()) << name;
    EXPECT_EQ(hash_of(got->rgb), expected.at("hash").get<std::uint64_t>()) << name;
  }
}

TEST(DecodePicture, NamesTheFileThatIsBroken) {
  const std::string png = content_of("gradient.png"), jpeg = content_of("decode/subsampled.jpg");
  EXPECT_THAT(refusal("no picture"), HasSubstr("is no PNG"));
  EXPECT_THAT(refusal(""), HasSubstr("is no PNG"));
  EXPECT_THAT(refusal(png.substr(0, 60)), HasSubstr("is cut short: its chunk at byte 33"));
  EXPECT_THAT(refusal(png.substr(0, png.size() - 12)), HasSubstr("without its IEND"));
  EXPECT_THAT(refusal(jpeg.substr(0, jpeg.size() / 2)), HasSubstr("Premature end"));
  EXPECT_THAT(refusal(jpeg.substr(0, 30)), HasSubstr("JPEG"));
}

TEST(DecodePicture, APictureDamagedOnItsWayIsRefused) {
  std::string png = content_of("gradient.png");
  png[60] = static_cast<char>(png[60] ^ 4);
  EXPECT_THAT(refusal(png), HasSubstr("checksum"));
}

// A header may claim 60,000 x 60,000 pixels in 40 bytes.
TEST(DecodePicture, RefusesAHugeClaimBeforeAllocating) {
  std::string bmp = content_of("decode/plain.bmp");
  for (const std::size_t at : {18U, 22U}) bmp.replace(at, 4, std::string("\x60\xEA\x00\x00", 4));
  EXPECT_THAT(refusal(bmp), HasSubstr("claims 60000 x 60000 pixels"));
  std::string jpeg = content_of("decode/grey.jpg");
  const std::size_t frame = jpeg.find(std::string("\xFF\xC0", 2));
  ASSERT_NE(frame, std::string::npos);
  jpeg.replace(frame + 5, 4, std::string("\xFE\xFF\xFE\xFF", 4));
  EXPECT_THAT(refusal(jpeg), HasSubstr("claims 65279 x 65279 pixels"));
}

TEST(DecodePicture, ASuperfluousByteInAJpegIsHarmless) {
  std::string jpeg = content_of("decode/full_colour.jpg");
  jpeg.insert(jpeg.size() - 2, "xx");
  EXPECT_TRUE(decode_picture(jpeg, "a.jpg"));
}

TEST(DecodePicture, AnyFlippedByteGivesAPictureOrAnError) {
  std::mt19937 random(2);
  for (const auto& file : std::filesystem::directory_iterator(std::string(PICTURES_GOLDEN) + "/decode")) {
    const std::string whole = content_of("decode/" + file.path().filename().string());
    for (int i = 0; i < 40; ++i) {
      std::string broken = whole;
      for (int flips = 0; flips < 3; ++flips) broken[random() % broken.size()] = static_cast<char>(random());
      if (i % 4 == 0) broken.resize(random() % broken.size());
      if (const auto got = decode_picture(broken, "x"); got) {
        EXPECT_EQ(std::ssize(got->rgb), got->width * got->height * 3);
      }
    }
  }
}

TEST(ReadPicture, AMissingFileIsIo) {
  const auto got = read_picture("/nowhere/a.png");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, troupe::Errc::kIo);
  EXPECT_THAT(got.error().message, HasSubstr("/nowhere/a.png"));
}

TEST(ExifOrientation, IsUprightForWhatIsNoExif) {
  const std::string good("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0", 22);
  EXPECT_EQ(exif_orientation(good), 6);
  for (std::size_t length = 0; length < 20; ++length) EXPECT_EQ(exif_orientation(good.substr(0, length)), 1) << length;
  std::string far = good;
  far.replace(4, 4, "\xFF\xFF\xFF\xFF");
  EXPECT_EQ(exif_orientation(far), 1);
  EXPECT_EQ(exif_orientation("MM*"), 1);
}

}  // namespace
}  // namespace qwen_vl
