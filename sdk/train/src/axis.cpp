#include "axis.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe::detail {
namespace {

/// 1, 2 or 5 times a power of ten, so that at most `most` steps make the whole.
double tick_of(double whole, int most) {
  const double exponent = std::floor(std::log10(whole / most));
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    const double tick = factor * std::pow(10.0, exponent);
    if (whole / tick <= most * (1 + 1e-9)) return tick;
  }
  return std::pow(10.0, exponent + 1);
}

void add_ticks(PlotAxis& axis, double tick) {
  for (double i = std::ceil(axis.low / tick - 1e-9); i * tick <= axis.high + 1e-9 * tick; ++i) axis.ticks.push_back(i * tick + 0.0);   // + 0.0: no -0
}

PlotAxis linear(double low, double high) {
  constexpr int kMost = 7;
  if (low >= 0 && low < 0.75 * high) low = 0;
  if (high <= 0 && high > 0.75 * low) high = 0;
  if (high - low < 1e-9 * std::max(std::abs(high), 1e-300)) {   // a flat line lies in the middle
    const double margin = high == 0 ? 1 : 0.5 * std::abs(high);
    low -= margin;
    high += margin;
  }
  const double tick = tick_of(high - low, kMost);
  PlotAxis out{std::floor(low / tick + 1e-9) * tick, std::ceil(high / tick - 1e-9) * tick, false, {}};
  add_ticks(out, tick);
  return out;
}

PlotAxis logarithmic(double low, double high) {
  PlotAxis out{std::pow(10.0, std::floor(std::log10(low) + 1e-9)), std::pow(10.0, std::ceil(std::log10(high) - 1e-9)), true, {}};
  if (out.low == out.high) out.high *= 10;
  const double decades = std::round(std::log10(out.high / out.low));
  const double stride = std::ceil(decades / 7);
  for (double i = 0; i <= decades; i += stride) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor > 1 && (decades > 2 || i == decades)) break;
      out.ticks.push_back(out.low * std::pow(10.0, i) * factor);
    }
  }
  return out;
}

}  // namespace

bool can_show(double value, ReportCurve::Scale scale) {
  return std::abs(value) < 1e100 && (scale == ReportCurve::Scale::kLinear || value > 1e-100);   // false for NaN
}

double PlotAxis::place(double value) const {
  return is_logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
}

PlotAxis axis_around(std::span<const double> values, ReportCurve::Scale scale) {
  const bool is_logarithmic = scale == ReportCurve::Scale::kLogarithmic;
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double value : values) {
    if (!can_show(value, scale)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (low > high) return {is_logarithmic ? 0.1 : 0, 1, is_logarithmic, {is_logarithmic ? 0.1 : 0, 1}};
  return is_logarithmic ? logarithmic(low, high) : linear(low, high);
}

PlotAxis step_axis(std::int64_t first, std::int64_t last) {
  PlotAxis out{static_cast<double>(first), static_cast<double>(std::max(last, first + 1)), false, {}};
  const double tick = std::max(1.0, tick_of(out.high - out.low, 8));
  add_ticks(out, tick);
  if (out.ticks.empty() || out.ticks.front() - out.low > 0.4 * tick) out.ticks.insert(out.ticks.begin(), out.low);
  return out;
}

}  // namespace troupe::detail
