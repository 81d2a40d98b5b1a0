#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <troupe/train/report.hpp>

namespace troupe::detail {

/// What an axis shows: [low, high], the marks on it, where a value lies in it.
struct PlotAxis {
  double low = 0;
  double high = 1;
  bool is_logarithmic = false;
  std::vector<double> ticks;

  /// 0 at low, 1 at high, outside beyond.
  [[nodiscard]] double place(double value) const;
};

/// Whether an axis can have the value: finite, not absurdly large; above 0 when logarithmic.
[[nodiscard]] bool can_show(double value, ReportCurve::Scale scale);

/// Ticks at 1, 2 or 5 times a power of ten, at most eight of them, around those `values` that can be shown.
/// From 0 unless that would leave the values in the upper quarter. None: up to 1.
[[nodiscard]] PlotAxis axis_around(std::span<const double> values, ReportCurve::Scale scale);

/// Whole ticks from `first` to `last`; the axis ends there.
[[nodiscard]] PlotAxis step_axis(std::int64_t first, std::int64_t last);

}  // namespace troupe::detail
