#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report.hpp"

namespace stamps {

/// The loss curve as an SVG: each step and a running mean, with axes; the held-out losses as dashed lines.
[[nodiscard]] std::string loss_svg(const std::vector<double>& losses, const std::optional<HeldOut>& held_out);

}  // namespace stamps
