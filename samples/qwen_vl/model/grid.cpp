#include "grid.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace qwen_vl {
namespace {

struct Cursor {
  std::array<std::vector<std::int64_t>, 3> axes;
  std::int64_t next = 0;

  void text(std::int64_t length) {
    for (auto& axis : axes) {
      for (std::int64_t i = 0; i < length; ++i) axis.push_back(next + i);
    }
    next += length;
  }
};

std::int64_t step_in_time(std::int64_t k, const TokenRun& run, const ModelConfig& config, VideoPositions video) {
  if (!run.is_video) return k;
  if (video == VideoPositions::kTransformers4) {
    return static_cast<std::int64_t>(static_cast<double>(k) * std::trunc(run.seconds) * config.tokens_per_second);
  }
  if (run.single) return static_cast<std::int64_t>(static_cast<float>(k) * (static_cast<float>(config.tokens_per_second) * static_cast<float>(run.seconds)));
  return static_cast<std::int64_t>(static_cast<double>(k) * (config.tokens_per_second * run.seconds));
}

void picture(Cursor& cursor, const TokenRun& run, const ModelConfig& config, VideoPositions video) {
  const std::int64_t rows = run.grid.h / config.vision.merge;
  const std::int64_t columns = run.grid.w / config.vision.merge;
  std::int64_t last = 0;
  for (std::int64_t t = 0; t < run.grid.t; ++t) {
    const std::int64_t time = step_in_time(t, run, config, video);
    last = std::max(last, time);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) {
        cursor.axes[0].push_back(cursor.next + time);
        cursor.axes[1].push_back(cursor.next + row);
        cursor.axes[2].push_back(cursor.next + column);
      }
    }
  }
  const std::int64_t sides = std::max(rows, columns);
  cursor.next += video == VideoPositions::kTransformers4 ? std::max(sides, last + 1) : sides;
}

}  // namespace

Windows windows_of(const Grid& grid, const VisionConfig& config) {
  const std::int64_t rows = grid.h / config.merge;
  const std::int64_t columns = grid.w / config.merge;
  const std::int64_t side = config.window_tokens();
  Windows out;
  for (std::int64_t frame = 0; frame < grid.t; ++frame) {
    for (std::int64_t top = 0; top < rows; top += side) {
      for (std::int64_t left = 0; left < columns; left += side) {
        const std::int64_t bottom = std::min(top + side, rows);
        const std::int64_t right = std::min(left + side, columns);
        for (std::int64_t row = top; row < bottom; ++row) {
          for (std::int64_t column = left; column < right; ++column) out.units.push_back((frame * rows + row) * columns + column);
        }
        out.sizes.push_back((bottom - top) * (right - left));
        out.frames.push_back(frame);
      }
    }
  }
  return out;
}

std::vector<std::int64_t> rope_positions(const std::vector<TokenRun>& runs, const ModelConfig& config, VideoPositions video) {
  Cursor cursor;
  for (const TokenRun& run : runs) {
    if (run.grid.h == 0) {
      cursor.text(run.length);
    } else {
      picture(cursor, run, config, video);
    }
  }
  std::vector<std::int64_t> out;
  for (const auto& axis : cursor.axes) out.insert(out.end(), axis.begin(), axis.end());
  return out;
}

}  // namespace qwen_vl
