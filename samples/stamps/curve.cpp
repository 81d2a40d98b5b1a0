#include "curve.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <sstream>

#include <troupe/base/text.hpp>

namespace stamps {
namespace {

using troupe::text;

constexpr double kWidth = 760, kHeight = 420, kLeft = 56, kTop = 36, kRight = 150, kBottom = 52;

struct Scale {
  double steps, top;
  [[nodiscard]] double x(double step) const { return kLeft + (kWidth - kLeft - kRight) * (step / steps); }
  [[nodiscard]] double y(double loss) const { return kTop + (kHeight - kTop - kBottom) * (1 - loss / top); }
};

/// 1, 2 or 5 times a power of ten, so that at most eight steps make the whole.
double tick_of(double whole) {
  double tick = std::pow(10.0, std::floor(std::log10(std::max(whole, 1.0))) - 1);
  for (const double factor : {2.0, 2.5, 2.0, 2.0, 2.5, 2.0}) {
    if (whole / tick <= 8) break;
    tick *= factor;
  }
  return tick;
}

std::string label(double x, double y, const char* anchor, const std::string& words, const char* color = "#333") {
  return text("<text x=\"", x, "\" y=\"", y, "\" text-anchor=\"", anchor, "\" fill=\"", color, "\">", words, "</text>\n");
}

std::string rule(double x1, double y1, double x2, double y2, const std::string& style) {
  return text("<line x1=\"", x1, "\" y1=\"", y1, "\" x2=\"", x2, "\" y2=\"", y2, "\" ", style, "/>\n");
}

std::string axes(const Scale& scale) {
  std::string out;
  const double tick = tick_of(scale.top);
  for (int i = 0; i * tick <= scale.top + 1e-9; ++i) {
    const double y = scale.y(i * tick);
    out += rule(kLeft, y, kWidth - kRight, y, "stroke=\"#e0e0e0\"") + label(kLeft - 8, y + 4, "end", text(i * tick));
  }
  const double step_tick = std::max(1.0, tick_of(scale.steps));
  for (int i = 0; i * step_tick <= scale.steps; ++i) {
    const double x = scale.x(i * step_tick);
    out += rule(x, kHeight - kBottom, x, kHeight - kBottom + 5, "stroke=\"#333\"") + label(x, kHeight - kBottom + 20, "middle", text(i * step_tick));
  }
  out += rule(kLeft, kHeight - kBottom, kWidth - kRight, kHeight - kBottom, "stroke=\"#333\"") + rule(kLeft, kTop, kLeft, kHeight - kBottom, "stroke=\"#333\"");
  return out + label((kLeft + kWidth - kRight) / 2, kHeight - 10, "middle", "step") + label(kLeft, 20, "start", "loss, nats per token");
}

std::string curve(const std::vector<double>& values, const Scale& scale, const char* style) {
  std::ostringstream out;
  out << "<polyline fill=\"none\" " << style << " points=\"";
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) out << scale.x(static_cast<double>(i + 1)) << ',' << scale.y(std::min(values[i], scale.top)) << ' ';
  }
  out << "\"/>\n";
  return out.str();
}

struct Level {
  double loss;
  const char* name;
  const char* color;
};

/// Dashed lines, their names at the right, kept apart where the losses are close.
std::string levels(const Scale& scale, std::vector<Level> all) {
  constexpr double kLine = 15;
  std::ranges::sort(all, std::greater(), &Level::loss);
  std::string out;
  double free = kTop;
  for (const Level& one : all) {
    if (!std::isfinite(one.loss)) continue;
    const double y = scale.y(one.loss);
    const double at = std::max(y + 4, free);
    free = at + kLine;
    char number[16];
    std::snprintf(number, sizeof number, " %.2f", one.loss);
    out += rule(kLeft, y, kWidth - kRight, y, text("stroke=\"", one.color, "\" stroke-dasharray=\"6 4\"")) +
           label(kWidth - kRight + 6, at, "start", text(one.name, number), one.color);
  }
  return out;
}

/// Means over the last kWindow values, fewer at the start.
std::vector<double> running_mean(const std::vector<double>& values) {
  constexpr std::size_t kWindow = 15;
  std::vector<double> out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t count = std::min(i + 1, kWindow);
    double sum = 0;
    for (std::size_t back = 0; back < count; ++back) sum += values[i - back];
    out.push_back(sum / static_cast<double>(count));
  }
  return out;
}

}  // namespace

std::string loss_svg(const std::vector<double>& losses, const std::optional<HeldOut>& held_out) {
  double top = 1;
  for (const double loss : losses) {
    if (std::isfinite(loss)) top = std::max(top, loss);
  }
  if (held_out) top = std::max({top, held_out->unigram, held_out->without, held_out->shuffled});
  const Scale scale{std::max<double>(1, static_cast<double>(losses.size())), std::ceil(top)};
  std::string out = text("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", kWidth, "\" height=\"", kHeight,
                         "\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n");
  out += axes(scale) + curve(losses, scale, "stroke=\"#9ecae1\"") + curve(running_mean(losses), scale, "stroke=\"#08519c\" stroke-width=\"2\"");
  out += label(kWidth - kRight, 20, "end", "training: each step (light), running mean (dark)", "#08519c");
  if (held_out) {
    out += levels(scale, {{held_out->unigram, "unigram", "#d94801"},
                          {held_out->without, "no pictures", "#7a0177"},
                          {held_out->shuffled, "shuffled", "#a63603"},
                          {held_out->with_pictures, "held out", "#006d2c"}});
  }
  return out + "</svg>\n";
}

}  // namespace stamps
