#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "picture.hpp"
#include "processor_config.hpp"
#include "resize.hpp"

namespace qwen_vl {

/// A picture or video as the model takes it: rows (frame, merge row, merge column, row inside, column inside), each
/// channel by channel, frame by frame of the temporal patch, row by row; normalised.
struct Patches {
  std::vector<float> values;   ///< [t * h * w, 3 * temporal patch * patch * patch]
  std::int64_t t = 0, h = 0, w = 0;
};

/// Resizes (smart_resize, bicubic), normalises and cuts. A still picture fills its temporal patch with itself.
/// Fails with: kBadData for an absurd aspect ratio, naming it; kInvalidArgument for bounds that ask for more than kMaxPixels.
[[nodiscard]] troupe::Result<Patches> process_image(const Picture& picture, const ProcessorConfig& config);

/// The same for frames of one size; the last frame fills the last temporal patch.
/// Fails with: kBadData for no frame, frames of different sizes.
[[nodiscard]] troupe::Result<Patches> process_video(std::span<const Picture> frames, const ProcessorConfig& config);

}  // namespace qwen_vl
