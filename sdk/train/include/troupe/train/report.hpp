#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <troupe/base/result.hpp>

namespace troupe {

/// A value by name: a figure of the summary, a line of text under a picture.
struct ReportText {
  std::string name;
  std::string text;
};

/// A dashed line across a curve: "held out", 2.03.
struct ReportLevel {
  std::string name;
  double value = 0;
};

/// A number by step.
struct ReportCurve {
  std::string title = {};
  std::string unit = {};                      ///< Of the values: "nats per token".
  std::vector<double> values = {};            ///< What is not finite makes a gap.
  std::int64_t first_step = 1;                ///< Of values[0].
  std::vector<ReportLevel> levels = {};
  int mean_over = 15;                         ///< Steps of the running mean (the dark line).
  enum class Scale : std::uint8_t { kLinear, kLogarithmic } scale = Scale::kLinear;
};

/// One rank of a stage.
struct ReportRank {
  std::string device = {};                    ///< "simulated-0".
  std::int64_t parameters = 0;                ///< Numbers it holds.
  std::int64_t peak_bytes = 0;                ///< Of tensors; 0: not tracked.
  std::int64_t budget_bytes = 0;              ///< What it may hold; 0: no limit.
};

/// A module and its layout.
struct ReportStage {
  std::string name;
  std::string mesh = {};                      ///< "dp=2,sp=4".
  std::vector<ReportRank> ranks = {};
};

/// Bytes over an edge in one step.
struct ReportEdge {
  std::string name;
  std::int64_t referenced = 0;                ///< Handed over without a copy.
  std::int64_t copied = 0;
};

/// A picture with what is said about it.
struct ReportPicture {
  std::string file;                           ///< Content of a PNG, JPEG, GIF or WebP file.
  std::vector<ReportText> texts = {};         ///< {"model", "a red car"}, {"people", "A car."}.
};
struct ReportPictures {
  std::string title;
  std::vector<ReportPicture> pictures = {};
};

/// What a page about a training run shows, in this order; parts that are empty are left out.
struct ReportPage {
  std::string title;
  std::string subtitle = {};
  std::vector<ReportText> figures = {};       ///< Large, at the top: few.
  std::vector<ReportCurve> curves = {};
  std::vector<ReportStage> stages = {};
  std::vector<ReportEdge> edges = {};
  std::vector<ReportPictures> pictures = {};
  std::vector<ReportText> settings = {};      ///< A table: the program's options.
  std::vector<std::string> notes = {};
};

/// One HTML file that needs no other: styles, curves (SVG) and pictures (data: URIs) are in it; no scripts. Pure.
/// Texts may hold anything: they are escaped, and what is no UTF-8 is replaced.
[[nodiscard]] std::string report_html(const ReportPage& page);

/// A curve as an SVG file of its own: each step light, the running mean dark, levels dashed, axes with round ticks. Of a long
/// run each pixel column keeps its least and greatest value. Pure.
[[nodiscard]] std::string curve_svg(const ReportCurve& curve);

/// report_html() into a file, whole or not at all. Fails with: kIo naming the file.
[[nodiscard]] Result<void> write_report_html(const std::string& path, const ReportPage& page);

}  // namespace troupe
