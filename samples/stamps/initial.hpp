#pragma once

#include <cmath>
#include <cstdint>

namespace stamps {

/// Standard deviation of a linear layer's initial weights: keeps the size of what passes through. A layer that
/// ends one of `blocks` blocks' two branches starts smaller, so that their sum does not grow.
[[nodiscard]] inline double spread(std::int64_t in, std::int64_t blocks = 0) {
  return 1.0 / std::sqrt(static_cast<double>(in) * static_cast<double>(blocks > 0 ? 2 * blocks : 1));
}

inline constexpr double kPositionSpread = 0.3;  ///< Beside patches and words of size 1: where something is must be heard.
inline constexpr double kTokenSpread = 0.07;    ///< Words double as the output layer: first scores of size 1.

}  // namespace stamps
