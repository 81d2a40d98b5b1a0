#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <sstream>

#include <troupe/base/text.hpp>
#include <troupe/train/report.hpp>
#include "axis.hpp"
#include "markup.hpp"

namespace troupe {
namespace {

using detail::escaped;
using detail::number_text;

constexpr double kWidth = 860, kHeight = 340, kLeft = 58, kTop = 40, kRight = 190, kBottom = 46;
constexpr double kPlotWidth = kWidth - kLeft - kRight, kPlotHeight = kHeight - kTop - kBottom;
constexpr const char* kLight = "#9ecae1";
constexpr const char* kDark = "#08519c";
constexpr const char* kLevelColors[] = {"#c2410c", "#7a0177", "#006d2c", "#92400e", "#54278f", "#0f766e"};

struct Plot {
  const ReportCurve& curve;
  detail::PlotAxis steps, values;

  [[nodiscard]] double x(double step) const { return kLeft + kPlotWidth * steps.place(step); }
  [[nodiscard]] double y(double value) const { return kTop + kPlotHeight * (1 - std::clamp(values.place(value), 0.0, 1.0)); }
  [[nodiscard]] double x_of(std::size_t index) const { return x(static_cast<double>(curve.first_step) + static_cast<double>(index)); }
};

std::string label(double x, double y, const char* anchor, const std::string& words, const char* color = "#444") {
  return text("<text x=\"", x, "\" y=\"", y, "\" text-anchor=\"", anchor, "\" fill=\"", color, "\">", escaped(words), "</text>\n");
}

std::string rule(double x1, double y1, double x2, double y2, const std::string& style) {
  return text("<line x1=\"", x1, "\" y1=\"", y1, "\" x2=\"", x2, "\" y2=\"", y2, "\" ", style, "/>\n");
}

std::string axes(const Plot& plot) {
  constexpr double kFoot = kHeight - kBottom;
  std::string out;
  for (const double tick : plot.values.ticks) {
    out += rule(kLeft, plot.y(tick), kWidth - kRight, plot.y(tick), "stroke=\"#e5e7eb\"") + label(kLeft - 8, plot.y(tick) + 4, "end", number_text(tick));
  }
  for (const double tick : plot.steps.ticks) {
    const auto step = static_cast<std::int64_t>(std::llround(tick));
    out += rule(plot.x(tick), kFoot, plot.x(tick), kFoot + 5, "stroke=\"#444\"") + label(plot.x(tick), kFoot + 19, "middle", detail::count_text(step));
  }
  out += rule(kLeft, kFoot, kWidth - kRight, kFoot, "stroke=\"#444\"");
  return out + label(kLeft + kPlotWidth / 2, kHeight - 8, "middle", "step");
}

/// Of each pixel column the least and the greatest value that can be shown, in their order, or one that can't; all when they are few.
std::vector<std::size_t> shown(const ReportCurve& curve, const std::vector<double>& values) {
  const auto columns = static_cast<std::size_t>(kPlotWidth);
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < values.size() && values.size() <= 2 * columns; ++i) out.push_back(i);
  for (std::size_t column = 0; column < columns && values.size() > 2 * columns; ++column) {
    const std::size_t begin = values.size() * column / columns, end = values.size() * (column + 1) / columns;
    std::size_t least = end, greatest = end;
    for (std::size_t i = begin; i < end; ++i) {
      if (!detail::can_show(values[i], curve.scale)) continue;
      if (least == end || values[i] < values[least]) least = i;
      if (greatest == end || values[i] > values[greatest]) greatest = i;
    }
    out.push_back(least == end ? begin : std::min(least, greatest));
    if (least != greatest) out.push_back(std::max(least, greatest));
  }
  return out;
}

/// Lines through the values that can be shown; between others there is a gap, and one alone is a dot.
std::string line(const Plot& plot, const std::vector<double>& values, const std::string& style) {
  std::string out, points;
  std::size_t count = 0;
  const auto end_piece = [&] {
    if (count > 0) out += text("<polyline fill=\"none\" stroke-linejoin=\"round\" stroke-linecap=\"round\" ", style, " points=\"", points, count == 1 ? points : "", "\"/>\n");
    points.clear();
    count = 0;
  };
  for (const std::size_t i : shown(plot.curve, values)) {
    if (!detail::can_show(values[i], plot.curve.scale)) {
      end_piece();
      continue;
    }
    std::ostringstream point;
    point.precision(5);
    point << plot.x_of(i) << ',' << plot.y(values[i]) << ' ';
    points += point.str();
    ++count;
  }
  end_piece();
  return out;
}

/// Means over the last `over` values, fewer at the start; of those that can be shown.
std::vector<double> running_mean(const ReportCurve& curve) {
  const auto over = static_cast<std::size_t>(std::max(1, curve.mean_over));
  std::vector<double> out;
  for (std::size_t i = 0; i < curve.values.size(); ++i) {
    double sum = 0;
    int count = 0;
    for (std::size_t at = i + 1 - std::min(i + 1, over); at <= i; ++at) {
      if (!detail::can_show(curve.values[at], curve.scale)) continue;
      sum += curve.values[at];
      ++count;
    }
    out.push_back(count == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / count);
  }
  return out;
}

struct Mark {
  std::string name;
  double value;
  const char* color;
  bool is_dashed;
};

/// Dashed lines, and names at the right, kept apart where the values are close.
std::string marks(const Plot& plot, std::vector<Mark> all) {
  constexpr double kLine = 15;
  std::erase_if(all, [&](const Mark& one) { return !detail::can_show(one.value, plot.curve.scale); });
  std::ranges::stable_sort(all, std::greater(), &Mark::value);
  std::vector<double> places;
  for (const Mark& one : all) places.push_back(std::max(plot.y(one.value) + 4, places.empty() ? kTop : places.back() + kLine));
  double most = kHeight - kBottom + 4;
  for (auto place = places.rbegin(); place != places.rend(); ++place, most -= kLine) *place = std::min(*place, most);   // what ran past the foot goes up
  std::string out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Mark& one = all[i];
    if (one.is_dashed) out += rule(kLeft, plot.y(one.value), kWidth - kRight, plot.y(one.value), text("stroke=\"", one.color, "\" stroke-dasharray=\"6 4\""));
    out += label(kWidth - kRight + 8, places[i], "start", text(one.name, " ", number_text(one.value)), one.color);
  }
  return out;
}

}  // namespace

std::string curve_svg(const ReportCurve& curve) {
  std::vector<double> all = curve.values;
  for (const auto& level : curve.levels) all.push_back(level.value);
  const auto last = curve.first_step + std::max<std::int64_t>(std::ssize(curve.values), 1) - 1;
  const Plot plot{curve, detail::step_axis(curve.first_step, last), detail::axis_around(all, curve.scale)};
  const auto means = running_mean(curve);
  std::vector<Mark> named;
  if (!means.empty()) named.push_back({"running mean", means.back(), kDark, false});
  for (std::size_t i = 0; i < curve.levels.size(); ++i) named.push_back({curve.levels[i].name, curve.levels[i].value, kLevelColors[i % std::size(kLevelColors)], true});
  const auto lost = std::ranges::count_if(curve.values, [&](double value) { return !detail::can_show(value, curve.scale); });
  std::string out = text("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", kWidth, "\" height=\"", kHeight, "\" viewBox=\"0 0 ", kWidth, " ", kHeight,
                         "\" role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n<title>", escaped(curve.title),
                         "</title>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n");
  out += label(kLeft, 22, "start", curve.unit.empty() ? curve.title : text(curve.title, ", ", curve.unit), "#111");
  out += label(kWidth - kRight, 22, "end", text("each step (light), mean of ", std::max(1, curve.mean_over), " (dark)"), kDark);
  if (lost > 0) out += label(kWidth - 8, 22, "end", text(lost, " values not shown"), "#b91c1c");
  out += axes(plot) + line(plot, curve.values, text("stroke=\"", kLight, "\" stroke-width=\"1.2\"")) + line(plot, means, text("stroke=\"", kDark, "\" stroke-width=\"2\""));
  return out + marks(plot, std::move(named)) + "</svg>\n";
}

}  // namespace troupe
