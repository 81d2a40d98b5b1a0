// case 6: placeholders and pictures that disagree are named: which sample, which picture, counts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tiny.hpp"

namespace qwen_vl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using troupe::Errc;

const ModelConfig kConfig = tiny_config();
const std::vector<TinySample> kSamples = {{.images = {{1, 4, 4}}}, {.images = {{1, 2, 4}, {1, 2, 2}}, .videos = {{2, 2, 2}}}};

std::string refusal(const RawBatch& raw, Errc code = Errc::kMismatch) {
  const auto got = assemble(raw, kConfig);
  if (got) return "accepted";
  EXPECT_EQ(got.error().code, code) << got.error().message;
  return got.error().message;
}

TEST(Assemble, PutsPicturesInWindowOrderAndTellsWhereTheyGo) {
  RawBatch raw = tiny_batch(kConfig, {{.images = {{1, 6, 4}}}});   // 3 x 2 units, windows of 2 x 2: units 0 1 2 3 | 4 5
  const auto got = troupe::or_throw(assemble(raw, kConfig));
  EXPECT_EQ(got.batch.patches.segments.size(), 2U);
  EXPECT_EQ(got.batch.patches.segments[0].rows, 16);
  EXPECT_EQ(got.batch.patches.segments[0].cut_multiple, 16);
  EXPECT_THAT(got.batch.text.columns[0], ElementsAre(2, 3, 4, 5, 6, 7));   // after a word and <|vision_start|>
  EXPECT_EQ(got.batch.coordinates.rows[4][1].item<std::int64_t>(), 2);      // the second unit begins two columns further
  EXPECT_EQ(got.batch.text.labels.size(1), raw.input_ids.size(1));
}

TEST(Assemble, ReordersWholeWindows) {
  const RawBatch raw = tiny_batch(kConfig, {{.images = {{1, 4, 8}}}});   // 2 x 4 units: 0 1 4 5 | 2 3 6 7
  const auto got = troupe::or_throw(assemble(raw, kConfig));
  EXPECT_THAT(got.original, ElementsAre(0, 1, 4, 5, 2, 3, 6, 7));
  EXPECT_TRUE(at::equal(got.batch.patches.rows.narrow(0, 8, 4), raw.pixel_values.narrow(0, 16, 4)));
}

TEST(Assemble, VideosFollowAllImagesInTheOriginalOrder) {
  const auto got = troupe::or_throw(assemble(tiny_batch(kConfig, {{.images = {{1, 2, 2}}, .videos = {{2, 2, 2}}}, {.images = {{1, 2, 2}}}}), kConfig));
  EXPECT_THAT(got.original, ElementsAre(0, 2, 3, 1));   // sample 0: image, two frames; sample 1: the second image
}

TEST(Assemble, NamesTooFewPlaces) {
  RawBatch raw = tiny_batch(kConfig, kSamples);
  raw.images[1] = {1, 4, 4};
  raw.pixel_values = noise({16 + 16 + 4, 96}, 1);
  EXPECT_THAT(refusal(raw), AllOf(HasSubstr("sample 1, image 1"), HasSubstr("makes 4 tokens"), HasSubstr("has 2")));
}

TEST(Assemble, NamesPicturesThatAreMissingOrLeftOver) {
  RawBatch raw = tiny_batch(kConfig, kSamples);
  raw.images.pop_back();
  raw.pixel_values = noise({16 + 8, 96}, 1);
  EXPECT_THAT(refusal(raw), AllOf(HasSubstr("sample 1"), HasSubstr("image 2"), HasSubstr("only 2 were given")));
  raw = tiny_batch(kConfig, kSamples);
  raw.videos.push_back({1, 2, 2});
  raw.pixel_values_videos = noise({8 + 4, 96}, 1);
  EXPECT_THAT(refusal(raw), AllOf(HasSubstr("2 videos were given"), HasSubstr("places for 1")));
}

TEST(Assemble, NamesShapesThatDisagree) {
  RawBatch raw = tiny_batch(kConfig, kSamples);
  raw.pixel_values = raw.pixel_values.narrow(0, 0, 20);
  EXPECT_THAT(refusal(raw), AllOf(HasSubstr("28 patches of 96 values"), HasSubstr("[20, 96]")));
  raw = tiny_batch(kConfig, kSamples);
  raw.labels = raw.labels.narrow(1, 0, 4);
  EXPECT_THAT(refusal(raw), HasSubstr("'labels' must be"));
  raw = tiny_batch(kConfig, kSamples);
  raw.images[0] = {1, 3, 4};
  EXPECT_THAT(refusal(raw), HasSubstr("image 0 is 1 x 3 x 4"));
  raw = tiny_batch(kConfig, kSamples);
  raw.seconds = {1, 2, 3};
  EXPECT_THAT(refusal(raw), HasSubstr("3 entries for 1 videos"));
}

TEST(Assemble, NamesIdsOutsideTheVocabulary) {
  RawBatch raw = tiny_batch(kConfig, kSamples);
  raw.input_ids[1][2] = 163;
  EXPECT_THAT(refusal(raw, Errc::kBadData), AllOf(HasSubstr("'input_ids'[1][2] is 163"), HasSubstr("0 .. 162")));
  raw = tiny_batch(kConfig, kSamples);
  raw.labels[0][1] = -7;
  EXPECT_THAT(refusal(raw, Errc::kBadData), HasSubstr("'labels'[0][1] is -7"));
}

}  // namespace
}  // namespace qwen_vl
