#include "report.hpp"

#include <cmath>
#include <csignal>
#include <fstream>
#include <sstream>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "curve.hpp"
#include "pictures.hpp"
#include "stop.hpp"

namespace stamps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using test::Folder;

std::string content_of(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

TEST(Report, WritesResultsAndCurveAndNothingElse) {
  Folder folder;
  Config config;
  config.out = folder / "deep/er";
  Outcome outcome;
  outcome.losses = {3, 2.5, 2};
  outcome.held_out = HeldOut{1.5, 2, 2.5, 3};
  outcome.captions = {{"a.png", "A red \"car\".", "a red car", true, true}};
  ASSERT_TRUE(write_reports(config, outcome));
  EXPECT_THAT(content_of(config.out + "/results.json"), ::testing::AllOf(HasSubstr("\"unigram\": 3.0"), HasSubstr("A red \\\"car\\\"."), HasSubstr("\"stopped\": false")));
  EXPECT_THAT(content_of(config.out + "/loss.svg"), ::testing::AllOf(HasSubstr("<svg"), HasSubstr("unigram 3.00"), HasSubstr("</svg>")));
  EXPECT_THAT(folder.names(), ElementsAre("deep"));
  ASSERT_TRUE(write_reports(config, outcome)) << "over the old ones";
}

TEST(Report, FailureNamesTheFileAndLeavesNoPart) {
  Folder folder;
  test::write(folder / "file", "");
  Config config;
  config.out = folder / "file";
  const auto written = write_reports(config, {});
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, troupe::Errc::kIo);
  EXPECT_THAT(written.error().message, HasSubstr(folder / "file"));
  // the place is taken by a folder: the rename fails after the whole file was written
  std::filesystem::create_directories(folder / "taken/inside");
  const auto renamed = write_whole(folder / "taken", "words");
  ASSERT_FALSE(renamed);
  EXPECT_THAT(renamed.error().message, HasSubstr("taken"));
  EXPECT_THAT(folder.names(), ElementsAre("file", "taken"));
}

TEST(Curve, ADrawingOfNothingIsWhole) {
  EXPECT_THAT(loss_svg({}, std::nullopt), HasSubstr("</svg>"));
  EXPECT_THAT(loss_svg({std::nan("")}, std::nullopt), ::testing::Not(HasSubstr("nan")));
}

TEST(StopOnSignal, InterruptBecomesAStopToken) {
  StopOnSignal stop;
  EXPECT_FALSE(stop.requested());
  kill(getpid(), SIGINT);
  for (int i = 0; i < 5000 && !stop.requested(); ++i) usleep(1000);
  EXPECT_TRUE(stop.requested());
}

}  // namespace
}  // namespace stamps
