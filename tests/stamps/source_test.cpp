#include "source.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "pictures.hpp"

namespace stamps {
namespace {

using test::Folder;

/// `count` examples whose captions tell them apart.
std::vector<Example> examples_in(const Folder& folder, int count) {
  test::write_stamps(folder, count);
  std::vector<Example> out;
  for (int i = 0; i < count; ++i) {
    const std::string name = (i < 10 ? "0" : "") + std::to_string(i);
    out.push_back({folder / (name + ".png"), name, {kBegin, 4 + i, 5, kEnd}});
  }
  return out;
}

TEST(TrainingBatch, EachPassShowsEachExampleOnce) {
  for (int pass = 0; pass < 3; ++pass) {
    std::set<std::size_t> seen;
    for (int i = 0; i < 5; ++i) {
      for (const auto example : training_batch(20, 4, 7, pass * 5 + i)) EXPECT_TRUE(seen.insert(example).second);
    }
    EXPECT_EQ(seen.size(), 20U);
  }
}

// NUM-8: the order is a function of the seed
TEST(TrainingBatch, DependsOnSeedAndIndexOnly) {
  EXPECT_EQ(training_batch(100, 8, 7, 3), training_batch(100, 8, 7, 3));
  EXPECT_NE(training_batch(100, 8, 7, 3), training_batch(100, 8, 8, 3));
  EXPECT_NE(training_batch(100, 8, 7, 0), training_batch(100, 8, 7, 12));
}

TEST(TrainingBatch, IsSmallerThanAskedWhenThereIsLess) {
  EXPECT_EQ(training_batch(3, 8, 7, 5).size(), 3U);
  EXPECT_TRUE(training_batch(0, 8, 7, 5).empty());
}

TEST(TrainingSource, DecodesEachPictureOnce) {
  Folder folder;
  TrainingSource source({examples_in(folder, 8), 4, 7});
  ASSERT_TRUE(source.next() && source.next());
  std::filesystem::remove_all(folder.path());  // a second look at a file would fail
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(source.next());
}

TEST(TrainingSource, WithoutExamplesEndsAtOnce) { EXPECT_FALSE(TrainingSource({{}, 4, 7}).next()); }

TEST(TrainingSource, BrokenPictureFailsThatBatchOnly) {
  Folder folder;
  TrainingSource source({examples_in(folder, 8), 4, 7});
  const auto first = training_batch(8, 4, 7, 0);
  test::write(folder / ("0" + std::to_string(first[1]) + ".png"), "");
  try {
    (void)source.next();
    FAIL() << "the batch holds an empty picture";
  } catch (const troupe::Exception& error) {
    EXPECT_EQ(error.error().code, troupe::Errc::kBadData);
    EXPECT_NE(error.error().message.find("0" + std::to_string(first[1]) + ".png"), std::string::npos);
  }
  EXPECT_TRUE(source.next());
}

TEST(PictureCache, CountsWhatItDecoded) {
  Folder folder;
  test::write_stamps(folder, 2);
  PictureCache cache;
  const Picture* const first = &cache.get(folder / "00.png");
  EXPECT_EQ(&cache.get(folder / "00.png"), first);
  cache.get(folder / "01.png");
  EXPECT_EQ(cache.decoded(), 2);
}

TEST(HeldOutSource, ShowsTrueThenShuffledThenNone) {
  Folder folder;
  const auto examples = examples_in(folder, 6);
  HeldOutSource source({examples, 4, 7});
  std::vector<Batch> passes[kShows];
  for (auto& pass : passes) {
    while (auto batch = source.next()) pass.push_back(std::move(*batch));
    ASSERT_EQ(pass.size(), 2U);
    EXPECT_EQ(pass[0].text.ids.size(0), 4);
    EXPECT_EQ(pass[1].text.ids.size(0), 2);
    EXPECT_TRUE(at::equal(pass[0].text.ids, passes[0][0].text.ids));
  }
  EXPECT_EQ(passes[0][0].pixels.rows.size(0), 4 * kPatches);
  EXPECT_FALSE(at::equal(passes[0][0].pixels.rows, passes[1][0].pixels.rows));
  EXPECT_EQ(passes[2][0].pixels.rows.sizes(), (std::vector<std::int64_t>{0, kPatchSize}));
  EXPECT_TRUE(passes[2][0].pixels.segments.empty());
  EXPECT_TRUE(source.next()) << "and from the start again";
}

TEST(MakeBatch, LabelsAreTheNextTokensAndPaddingDoesNotCount) {
  const Example shorter{"", "", {kBegin, 7, kEnd}};
  const Example longer{"", "", {kBegin, 8, 9, kEnd}};
  const Batch batch = make_batch({&shorter, &longer}, {});
  EXPECT_TRUE(at::equal(batch.text.ids, at::tensor({kBegin + 0L, 7L, kPad + 0L, kBegin + 0L, 8L, 9L}, at::kLong).view({2, 3})));
  EXPECT_TRUE(at::equal(batch.text.labels, at::tensor({7L, kEnd + 0L, -100L, 8L, 9L, kEnd + 0L}, at::kLong).view({2, 3})));
  EXPECT_EQ(batch.text.counted, (std::vector<std::int64_t>{2, 3}));
}

TEST(MakeBatch, OfNothingIsEmpty) {
  const Batch batch = make_batch({}, {});
  EXPECT_EQ(batch.text.ids.size(0), 0);
  EXPECT_EQ(batch.pixels.rows.sizes(), (std::vector<std::int64_t>{0, kPatchSize}));
}

}  // namespace
}  // namespace stamps
