#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <troupe/train/report.hpp>

#include "files.hpp"
#include "markup.hpp"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

ReportPage whole_page() {
  ReportPage page{.title = "A run"};
  page.subtitle = "300 steps";
  page.figures = {{"loss", "0.85"}};
  page.curves = {{.title = "Loss", .unit = "nats", .values = {3, 2, 1}, .levels = {{"held out", 1.5}}}};
  page.stages = {{"vision", "dp=1,sp=2", {{"device 0", 1'234'567, 50 << 20, 1 << 30}, {"device 1", 1'234'567, 25 << 20, 1 << 30}}}, {"language", "", {{"host", 10, 0, 0}}}};
  page.edges = {{"vision -> language", 1536, 0}};
  page.pictures = {{"Held out", {{"\x89PNG", {{"model", "a red car"}, {"people", "A car."}}}}}};
  page.settings = {{"seed", "7"}};
  page.notes = {"The pictures are small."};
  return page;
}

TEST(ReportHtml, ShowsEachPart) {
  const std::string html = report_html(whole_page());
  EXPECT_EQ(markup_fault(html), "");
  for (const char* part : {"<h1>A run</h1>", "300 steps", "0.85", "held out 1.5", "vision", "2 ranks, mesh dp=1,sp=2", "1 rank<", "1,234,567", "50.0 MiB of 1.0 GiB", "width:100%", "width:50%",
                           "not tracked", "vision -&gt; language", "1.5 KiB", "a red car", "A car.", "data:image/png;base64,iVBORw==", "<td class=\"text\">7</td>", "The pictures are small."}) {
    EXPECT_THAT(html, HasSubstr(part));
  }
}

TEST(ReportHtml, NeedsNoOtherFileAndNoScript) {
  const std::string html = report_html(whole_page());
  for (const char* banned : {"<script", "<link", "<iframe", "@import", "url(", "href="}) EXPECT_THAT(html, Not(HasSubstr(banned)));
  for (const auto& source : attributes(html, "src")) EXPECT_TRUE(source.starts_with("data:")) << source;
}

TEST(ReportHtml, LeavesOutWhatIsEmpty) {
  const std::string html = report_html({.title = "A run"});
  EXPECT_EQ(markup_fault(html), "");
  EXPECT_THAT(html, AllOf(Not(HasSubstr("<h2>")), Not(HasSubstr("<table>")), Not(HasSubstr("<svg")), HasSubstr("<h1>A run</h1>")));
}

TEST(ReportHtml, EscapesTextAndReplacesWhatIsNoUtf8) {
  const std::string html = report_html({.title = "<b>\"x\" & 'y'</b>", .notes = {"é \xf0\x9f\x98\x80 \xff\xc0\xaf \xed\xa0\x80 a\x01z"}});
  EXPECT_EQ(markup_fault(html), "");
  EXPECT_THAT(html, HasSubstr("&lt;b&gt;&quot;x&quot; &amp; &#39;y&#39;&lt;/b&gt;"));
  const std::string r = "\xef\xbf\xbd";
  EXPECT_THAT(html, HasSubstr("<p>é \xf0\x9f\x98\x80 " + r + r + r + " " + r + r + r + " a" + r + "z</p>"));
}

TEST(ReportHtml, EmbedsAnyKindOfPictureAsBase64) {
  const std::pair<std::string, const char*> cases[] = {
      {"\xff\xd8\xff", "data:image/jpeg;base64,/9j/\""}, {"GIF89a", "data:image/gif;base64,R0lGODlh\""}, {"RIFF1234", "data:image/webp;base64,UklGRjEyMzQ=\""}, {"\x89PNG\r", "data:image/png;base64,iVBORw0=\""}};
  for (const auto& [file, uri] : cases) EXPECT_THAT(report_html({.title = "", .pictures = {{"", {{file, {}}}}}}), HasSubstr(uri));
}

TEST(ReportHtml, IsWrittenWholeOrNotAtAll) {
  const TemporaryFolder folder;
  const ReportPage page = whole_page();
  ASSERT_TRUE(write_report_html(folder / "report.html", page));
  EXPECT_EQ(content_of(folder / "report.html"), report_html(page));
  EXPECT_EQ(folder.count(), 1);
  const auto failed = write_report_html(folder / "none/report.html", page);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::kIo);
}

TEST(ReportHtml, StaysWellFormedWhateverTheTexts) {
  EXPECT_TRUE(rc::check([](const std::string& one, const std::string& two, const std::vector<double>& values) {
    ReportPage page{.title = one};
    page.figures = {{one, two}};
    page.curves = {{.title = two, .unit = one, .values = values, .levels = {{one, values.empty() ? 0 : values.front()}}}};
    page.stages = {{one, two, {{one, 1, 1, 1}}}};
    page.edges = {{two, 1, 2}};
    page.pictures = {{one, {{two, {{one, two}}}}}};
    page.settings = {{one, two}};
    page.notes = {two};
    RC_ASSERT(markup_fault(report_html(page)) == "");
    page.curves[0].scale = ReportCurve::Scale::kLogarithmic;
    const std::string svg = curve_svg(page.curves[0]);
    RC_ASSERT(markup_fault(svg) == "");
    RC_ASSERT(svg.find("nan,") == std::string::npos && svg.find("inf,") == std::string::npos);
  }));
}

/// The words of the SVG's texts that stand at x = `x` (or anywhere), in order.
std::vector<std::string> texts(const std::string& svg, const std::string& x = "") {
  std::vector<std::string> out;
  for (std::size_t at = svg.find("<text x=\"" + x); at != std::string::npos; at = svg.find("<text x=\"" + x, at + 1)) {
    const std::size_t begin = svg.find('>', at) + 1;
    out.push_back(svg.substr(begin, svg.find('<', begin) - begin));
  }
  return out;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

constexpr const char* kValueLabels = "50\"";   // where those of the value axis end

TEST(CurveSvg, HasRoundTicks) {
  const auto ticks = [](std::vector<double> values, ReportCurve::Scale scale = ReportCurve::Scale::kLinear) {
    return texts(curve_svg({.title = "t", .values = std::move(values), .scale = scale}), kValueLabels);
  };
  EXPECT_THAT(ticks({6.3, 0.8}), ElementsAre("0", "1", "2", "3", "4", "5", "6", "7"));
  EXPECT_THAT(ticks({0.00021, 0.00002}), ElementsAre("0", "5e-05", "0.0001", "0.00015", "0.0002", "0.00025"));
  EXPECT_THAT(ticks({6500, 7100}), ElementsAre("6,500", "6,600", "6,700", "6,800", "6,900", "7,000", "7,100"));
  EXPECT_THAT(ticks({-1, 1}), ElementsAre("-1", "-0.5", "0", "0.5", "1"));
  EXPECT_THAT(ticks({2, 2, 2}), ElementsAre("1", "1.5", "2", "2.5", "3"));
  EXPECT_THAT(ticks({0}), ElementsAre("-1", "-0.5", "0", "0.5", "1"));
  EXPECT_THAT(ticks({}), ElementsAre("0", "1"));
  EXPECT_THAT(ticks({8, 0.002}, ReportCurve::Scale::kLogarithmic), ElementsAre("0.001", "0.01", "0.1", "1", "10"));
  EXPECT_THAT(ticks({8, 2}, ReportCurve::Scale::kLogarithmic), ElementsAre("1", "2", "5", "10"));
}

TEST(CurveSvg, CountsStepsFromTheFirst) {
  const ReportCurve curve{.title = "t", .values = std::vector<double>(300, 1.0), .first_step = 1001};
  const auto all = texts(curve_svg(curve));
  for (const char* tick : {"1,050", "1,100", "1,300"}) EXPECT_THAT(all, ::testing::Contains(tick));
}

TEST(CurveSvg, WhatIsNotFiniteMakesAGapAndIsCounted) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();
  const std::string svg = curve_svg({.title = "t", .values = {3, 2, kNan, kInf, 2, 1}, .mean_over = 1});
  EXPECT_EQ(count_of(svg, "<polyline"), 4U);   // two pieces, light and dark
  EXPECT_THAT(svg, AllOf(HasSubstr("2 values not shown"), Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
  EXPECT_EQ(count_of(curve_svg({.title = "t", .values = {3, 2}}), "not shown"), 0U);
}

TEST(CurveSvg, TheDarkLineIsTheMeanOfTheLastSteps) {
  const std::string svg = curve_svg({.title = "t", .values = {0, 0, 0, 8, 6}, .mean_over = 2});
  EXPECT_THAT(svg, AllOf(HasSubstr("mean of 2 (dark)"), HasSubstr("running mean 7<")));
}

TEST(CurveSvg, NamesOfCloseLevelsDoNotTouch) {
  ReportCurve curve{.title = "t", .values = {10, 9}};
  for (int i = 0; i < 6; ++i) curve.levels.push_back({"level", 0.01 * i});
  const std::string svg = curve_svg(curve);
  std::vector<double> places;
  for (std::size_t at = svg.find("<text x=\"678\" y=\""); at != std::string::npos; at = svg.find("<text x=\"678\" y=\"", at + 1)) places.push_back(std::stod(svg.substr(at + 17)));
  ASSERT_EQ(places.size(), 7U);
  for (std::size_t i = 1; i < places.size(); ++i) EXPECT_GE(places[i] - places[i - 1], 14.9);
  EXPECT_LE(places.back(), 340 - 46 + 4);
}

TEST(CurveSvg, AMillionStepsStaySmallAndKeepTheirPeaks) {
  std::vector<double> values(1'000'000, 1.0);
  values[777'777] = 50;
  const std::string svg = curve_svg({.title = "t", .values = std::move(values), .mean_over = 1});
  EXPECT_LT(svg.size(), 60'000U);
  EXPECT_THAT(svg, HasSubstr(",40 "));   // the top of the plot
}

}  // namespace
}  // namespace troupe
