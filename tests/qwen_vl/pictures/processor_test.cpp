// Against transformers' Qwen2-VL image processor (tests/golden/pictures): pixel values within 1/255, grids equal.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "golden_file.hpp"
#include "processor.hpp"

namespace qwen_vl {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

using test::content_of;

json golden() { return json::parse(content_of("cases.json")); }

ProcessorConfig config_of(const json& one, const json& all) {
  ProcessorConfig out;
  out.patch = one.at("patch");
  out.temporal_patch = one.at("temporal");
  out.merge = one.at("merge");
  out.min_pixels = all.at("bounds")[0];
  out.max_pixels = all.at("bounds")[1];
  return out;
}

TEST(Processor, MakesThePublishedPixelValues) {
  const json all = golden();
  ASSERT_GE(all.at("cases").size(), 10U);
  for (const auto& [name, one] : all.at("cases").items()) {
    SCOPED_TRACE(name);
    const ProcessorConfig config = config_of(one, all);
    const auto picture = read_picture(std::string(PICTURES_GOLDEN) + "/" + name + ".png");
    ASSERT_TRUE(picture) << picture.error().describe();
    const auto patches = process_image(*picture, config);
    ASSERT_TRUE(patches) << patches.error().describe();
    EXPECT_EQ((std::vector<std::int64_t>{patches->t, patches->h, patches->w}), one.at("grid").get<std::vector<std::int64_t>>());
    const std::string expected = content_of(name + ".u8");
    const auto width = one.at("width").get<std::size_t>();
    ASSERT_EQ(expected.size(), width * one.at("rows").get<std::size_t>());
    ASSERT_GE(patches->values.size(), expected.size());
    double most = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const std::size_t channel = i % width / (width / 3);
      const double byte = (static_cast<double>(patches->values[i]) * config.deviation[channel] + config.mean[channel]) * 255;
      most = std::max(most, std::abs(byte - static_cast<unsigned char>(expected[i])));
    }
    EXPECT_LT(most, 1e-3) << "in bytes of 255";   // the same bytes, not only near ones
    for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(patches->values[i], one.at("first")[i].get<double>(), 1e-6);
  }
}

TEST(SmartResize, GivesThePublishedSizes) {
  const json all = golden();
  for (const auto& row : all.at("smart_resize")) {
    const auto got = smart_resize({row[0], row[1]}, {.factor = row[2], .min_pixels = row[3], .max_pixels = row[4]});
    ASSERT_EQ(got.has_value(), !row[5].is_null()) << row;
    if (got) {
      EXPECT_EQ(*got, (Size{row[5][0], row[5][1]})) << row;
    }
  }
}

TEST(SmartResize, RefusesAnAbsurdAspectRatio) {
  const auto got = smart_resize({4020, 20}, {});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, troupe::Errc::kBadData);
  EXPECT_THAT(got.error().message, HasSubstr("aspect ratio 201"));
  EXPECT_TRUE(smart_resize({4000, 20}, {}));
}

Picture plain(std::int64_t width, std::int64_t height, std::uint8_t value) { return {width, height, std::vector<std::uint8_t>(static_cast<std::size_t>(width * height * 3), value)}; }

TEST(ProcessVideo, FillsTheLastTemporalPatchWithTheLastFrame) {
  ProcessorConfig config;
  config.min_pixels = config.max_pixels = 56 * 56;
  const std::vector<Picture> frames = {plain(56, 56, 0), plain(56, 56, 100), plain(56, 56, 200)};
  const auto patches = process_video(frames, config);
  ASSERT_TRUE(patches);
  EXPECT_EQ(patches->t, 2);
  const auto at = [&](std::size_t row, std::size_t frame) { return patches->values[row * 1176 + frame * 196]; };
  EXPECT_LT(at(0, 0), at(0, 1));
  EXPECT_EQ(at(16, 0), at(16, 1));
  EXPECT_GT(at(16, 0), at(0, 1));
}

TEST(ProcessVideo, RefusesFramesOfDifferentSizes) {
  const std::vector<Picture> frames = {plain(56, 56, 0), plain(57, 56, 0)};
  const auto got = process_video(frames, {});
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().message, HasSubstr("frame 1"));
}

TEST(ProcessImage, RefusesSizesThatCannotBe) {
  const auto refused = [](const ProcessorConfig& config) { return process_image(plain(56, 56, 0), config).error(); };
  EXPECT_THAT(refused({.patch = 0}).message, HasSubstr("patch 0"));
  const auto huge = refused({.min_pixels = std::int64_t{1} << 39, .max_pixels = std::int64_t{1} << 40});
  EXPECT_EQ(huge.code, troupe::Errc::kInvalidArgument);
  EXPECT_THAT(huge.message, HasSubstr("lower min_pixels"));
}

}  // namespace
}  // namespace qwen_vl
