#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace troupe {

/// Linear warm-up, then half a cosine down to `final_ratio`.
struct WarmupCosine {
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 0;   ///< 0: constant after the warm-up.
  double final_ratio = 0.1;
};

/// What the learning rate is multiplied by at `step` (from 1). Pure.
[[nodiscard]] inline double warmup_cosine(const WarmupCosine& schedule, std::int64_t step) {
  if (step <= schedule.warmup_steps) return static_cast<double>(step) / static_cast<double>(std::max<std::int64_t>(schedule.warmup_steps, 1));
  if (schedule.total_steps <= schedule.warmup_steps) return 1.0;
  const double done = static_cast<double>(step - schedule.warmup_steps) / static_cast<double>(schedule.total_steps - schedule.warmup_steps);
  return schedule.final_ratio + (1 - schedule.final_ratio) * 0.5 * (1 + std::cos(std::numbers::pi * std::min(done, 1.0)));
}

}  // namespace troupe
