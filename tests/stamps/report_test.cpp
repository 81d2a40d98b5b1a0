#include "report.hpp"

#include <cmath>
#include <csignal>
#include <fstream>
#include <sstream>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "page.hpp"
#include "pictures.hpp"
#include "common/stop.hpp"

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

TEST(Report, WritesResultsCurveAndPageAndNothingElse) {
  Folder folder;
  Config config;
  config.out = folder / "deep/er";
  Outcome outcome;
  outcome.losses = {3, 2.5, 2};
  outcome.held_out = HeldOut{1.5, 2, 2.5, 3};
  outcome.captions = {{"a.png", "A red \"car\".", "a red car", true, true, "\x89PNG"}, {"b.png", "A bow.", "a car", false, false}};
  outcome.stages = {{"vision", "sp=2", {{"device 0", 7, 1 << 20, 0}}}};
  ASSERT_TRUE(write_reports(config, outcome));
  EXPECT_THAT(content_of(config.out + "/results.json"), ::testing::AllOf(HasSubstr("\"unigram\": 3.0"), HasSubstr("A red \\\"car\\\"."), HasSubstr("\"stopped\": false")));
  EXPECT_THAT(content_of(config.out + "/loss.svg"), ::testing::AllOf(HasSubstr("<svg"), HasSubstr("unigram 3<"), HasSubstr("</svg>")));
  EXPECT_THAT(content_of(config.out + "/report.html"), ::testing::AllOf(HasSubstr("<svg"), HasSubstr("A red &quot;car&quot;."), HasSubstr("data:image/png;base64,iVBORw=="), HasSubstr("1.0 MiB"),
                                                                        ::testing::Not(HasSubstr("A bow."))));
  EXPECT_THAT(folder.names(), ElementsAre("deep"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(config.out), std::filesystem::directory_iterator()), 3);
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
  std::filesystem::create_directories(folder / "out/results.json/inside");
  config.out = folder / "out";
  const auto renamed = write_reports(config, {});
  ASSERT_FALSE(renamed);
  EXPECT_THAT(renamed.error().message, HasSubstr("results.json"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(config.out), std::filesystem::directory_iterator()), 1);
}

TEST(Report, ARunOfNoStepsIsWhole) {
  EXPECT_THAT(troupe::curve_svg(loss_curve({})), HasSubstr("</svg>"));
  EXPECT_THAT(troupe::report_html(page_of({}, {})), HasSubstr("</html>"));
}

TEST(StopOnSignal, InterruptBecomesAStopToken) {
  samples::StopOnSignal stop;
  EXPECT_FALSE(stop.requested());
  kill(getpid(), SIGINT);
  for (int i = 0; i < 5000 && !stop.requested(); ++i) usleep(1000);
  EXPECT_TRUE(stop.requested());
}

}  // namespace
}  // namespace stamps
