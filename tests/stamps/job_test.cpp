// The program's graph on a few small pictures: what goes wrong is a typed error, for that call only.
#include "job.hpp"

#include <algorithm>
#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "captions.hpp"
#include "pictures.hpp"

namespace stamps {
namespace {

using ::testing::HasSubstr;
using test::Folder;
using troupe::Errc;

Config small(const Folder& folder) {
  Config config;
  config.data = folder.path();
  config.width = 24;
  config.layers = 1;
  config.batch = 8;
  return config;
}

constexpr int kSteps = 120;

troupe::Result<troupe::Optimizer> optimizer_of(Job& job) { return job.graph.optimizer({.groups = {{"*", 1e-3, 0.0}}}); }

TEST(StampsJob, BrokenPictureFailsThatStepOnly) {
  Folder folder;
  test::write_stamps(folder, 40);
  const auto data = load_dataset(folder.path());
  ASSERT_TRUE(data) << data.error().message;
  const Config config = small(folder);
  const std::string broken = data->train[training_batch(data->train.size(), config.batch, config.seed, 1)[3]].picture;
  test::write(broken, "not a picture");
  auto job = make_job(config, *data);
  ASSERT_TRUE(job) << job.error().describe();
  const auto optimizer = optimizer_of(*job);
  ASSERT_TRUE(optimizer);
  EXPECT_TRUE(job->graph.step(*optimizer, {.source = job->training.id()}));
  const auto failed = job->graph.step(*optimizer, {.source = job->training.id()});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::kBadData) << failed.error().describe();
  EXPECT_THAT(failed.error().describe(), HasSubstr(broken));
  const auto next = job->graph.step(*optimizer, {.source = job->training.id()});
  ASSERT_TRUE(next) << next.error().describe();
  EXPECT_EQ(next->step, 2);
}

TEST(StampsJob, RefusedLayoutNamesTheReason) {
  Folder folder;
  test::write_stamps(folder, 40);
  Config config = small(folder);
  config.language = "tp=8";
  const auto job = make_job(config, *load_dataset(folder.path()));
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code, Errc::kInvalidArgument);
  EXPECT_THAT(job.error().describe(), ::testing::AllOf(HasSubstr("language tp=8"), HasSubstr("6")));
}

// case 3, EDG-3: a pass without any picture takes the same path
TEST(StampsJob, HeldOutPassesWithAndWithoutPictures) {
  Folder folder;
  test::write_stamps(folder, 60);
  const auto data = load_dataset(folder.path());
  ASSERT_TRUE(data);
  auto job = make_job(small(folder), *data);
  ASSERT_TRUE(job) << job.error().describe();
  std::vector<double> losses;
  for (int pass = 0; pass < kShows; ++pass) {
    for (;;) {
      const auto report = job->graph.evaluate({.source = job->held_out.id()});
      if (!report && report.error().code == Errc::kEndOfData) break;
      ASSERT_TRUE(report) << report.error().describe();
      if (report->samples == 8 || losses.size() < static_cast<std::size_t>(pass) + 1) losses.resize(static_cast<std::size_t>(pass) + 1, report->loss);
    }
  }
  ASSERT_EQ(losses.size(), 3U);
  EXPECT_NE(losses[0], losses[1]);
  EXPECT_NE(losses[0], losses[2]);
}

TEST(StampsJob, CaptionsHaveKnownWords) {
  using namespace std::chrono_literals;
  Folder folder;
  test::write_stamps(folder, 40);
  const auto data = load_dataset(folder.path());
  ASSERT_TRUE(data);
  auto job = make_job(small(folder), *data);
  ASSERT_TRUE(job) << job.error().describe();
  const auto batch = job->training.next(60s);
  ASSERT_TRUE(batch);
  const auto captions = caption(job->graph, *batch, job->vision, job->language, data->words);
  ASSERT_TRUE(captions) << captions.error().describe();
  EXPECT_EQ(captions->size(), 8U);
  for (const auto& line : *captions) EXPECT_THAT(line, ::testing::Not(HasSubstr("<")));
  // looking leaves no open tape behind
  const auto optimizer = optimizer_of(*job);
  ASSERT_TRUE(optimizer);
  const auto report = job->graph.step(*optimizer, {.source = job->training.id()});
  EXPECT_TRUE(report) << report.error().describe();
}

// the order of pictures, captions and samples holds all the way: what was learned comes out beside its picture
TEST(StampsJob, LearnsToSayTheColour) {
  using namespace std::chrono_literals;
  Folder folder;
  test::write_stamps(folder, 40);
  const auto data = load_dataset(folder.path());
  ASSERT_TRUE(data);
  const Config config = small(folder);
  auto job = make_job(config, *data);
  ASSERT_TRUE(job) << job.error().describe();
  const auto optimizer = job->graph.optimizer({.groups = {{"*", 5e-3, 0.0}}, .clip = 1.0, .warmup_steps = 10, .total_steps = kSteps});
  ASSERT_TRUE(optimizer);
  for (int step = 0; step < kSteps; ++step) {
    const auto report = job->graph.step(*optimizer, {.source = job->training.id()});
    ASSERT_TRUE(report) << report.error().describe();
  }
  const auto batch = job->training.next(60s);
  ASSERT_TRUE(batch);
  const auto captions = caption(job->graph, *batch, job->vision, job->language, data->words);
  ASSERT_TRUE(captions) << captions.error().describe();
  const auto shown = training_batch(data->train.size(), config.batch, config.seed, kSteps);
  ASSERT_EQ(captions->size(), shown.size());
  for (std::size_t i = 0; i < shown.size(); ++i) EXPECT_EQ((*captions)[i], caption_of(data->words, data->train[shown[i]].tokens));
}

}  // namespace
}  // namespace stamps
