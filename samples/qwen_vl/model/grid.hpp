#pragma once

#include <cstdint>
#include <vector>

#include "config.hpp"

namespace qwen_vl {

/// One picture (t = 1) or video in patches: frames (after the temporal patch), rows, columns.
struct Grid {
  std::int64_t t = 1;
  std::int64_t h = 0;
  std::int64_t w = 0;
  [[nodiscard]] std::int64_t patches() const noexcept { return t * h * w; }
  friend bool operator==(const Grid&, const Grid&) = default;
};

/// The attention windows of one grid: its merge units (merge x merge neighbouring patches, which become one token) in
/// window order, frame after frame, row of windows after row, and how many units each window has. Windows at the
/// right and bottom edge may be smaller. Source: get_window_index of transformers' qwen2_5_vl (notes 3.2, 3).
struct Windows {
  std::vector<std::int64_t> units;      ///< Place in window order -> number of the unit in the processor's order.
  std::vector<std::int64_t> sizes;      ///< Units of each window.
  std::vector<std::int64_t> frames;     ///< The frame each window belongs to.
};
[[nodiscard]] Windows windows_of(const Grid& grid, const VisionConfig& config);

/// How positions on the time axis of a video become whole numbers, and where text after it goes on.
enum class VideoPositions : std::uint8_t {
  kTransformers5,   ///< int(k x tokens per second x seconds); text goes on after max(rows, columns).
  kTransformers4,   ///< Seconds cut to whole ones first; text goes on after the largest position on any axis.
};

/// A run of a sequence: text tokens, or the tokens of one picture or video.
struct TokenRun {
  std::int64_t length = 0;
  Grid grid = {};               ///< h = 0: text.
  bool is_video = false;
  double seconds = 1;           ///< A video's seconds per grid step in time.
  bool single = false;          ///< `seconds` is multiplied in fp32, as transformers does for fp32 inputs.
};

/// Positions on three axes (time, row, column) of a sequence of runs: M-RoPE. Text counts on all three alike; a
/// picture's tokens count from the position it starts at along each axis. [3][tokens], axis-major.
/// Source: get_rope_index of transformers' qwen2_5_vl; Qwen2-VL, arXiv 2409.12191, section 2.1.
[[nodiscard]] std::vector<std::int64_t> rope_positions(const std::vector<TokenRun>& runs, const ModelConfig& config, VideoPositions video = VideoPositions::kTransformers5);

}  // namespace qwen_vl
