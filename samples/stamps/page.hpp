#pragma once

#include <troupe/train/report.hpp>

#include "config.hpp"
#include "report.hpp"

namespace stamps {

/// The loss by step, with the held-out losses as levels. A function of its arguments only, as page_of().
[[nodiscard]] troupe::ReportCurve loss_curve(const Outcome& outcome);

/// Everything about a run on one page.
[[nodiscard]] troupe::ReportPage page_of(const Config& config, const Outcome& outcome);

}  // namespace stamps
