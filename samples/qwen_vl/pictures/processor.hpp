#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "picture.hpp"
#include "resize.hpp"

namespace qwen_vl {

/// What preprocessor_config.json says; defaults as published for Qwen2.5-VL.
struct ProcessorConfig {
  std::int64_t patch = 14;
  std::int64_t temporal_patch = 2;
  std::int64_t merge = 2;
  std::int64_t min_pixels = 3136;
  std::int64_t max_pixels = 12845056;
  std::array<double, 3> mean = {0.48145466, 0.4578275, 0.40821073};
  std::array<double, 3> deviation = {0.26862954, 0.26130258, 0.27577711};
};

/// Reads `folder`/preprocessor_config.json (min_pixels and max_pixels, or size's shortest_edge and longest_edge).
/// Fails with: kIo; kBadData; kInvalidArgument naming the file, the key, expected and got.
[[nodiscard]] troupe::Result<ProcessorConfig> read_processor_config(const std::string& folder);
[[nodiscard]] troupe::Result<ProcessorConfig> parse_processor_config(const std::string& json, const std::string& name);
/// The file's content for `config`, which transformers reads.
[[nodiscard]] std::string processor_config_json(const ProcessorConfig& config);

/// A picture or video as the model takes it: rows (frame, merge row, merge column, row inside, column inside), each
/// channel by channel, frame by frame of the temporal patch, row by row; normalised.
struct Patches {
  std::vector<float> values;   ///< [t * h * w, 3 * temporal patch * patch * patch]
  std::int64_t t = 0, h = 0, w = 0;
};

/// Resizes (smart_resize, bicubic), normalises and cuts. A still picture fills its temporal patch with itself.
/// Fails with: kBadData for an absurd aspect ratio.
[[nodiscard]] troupe::Result<Patches> process_image(const Picture& picture, const ProcessorConfig& config);

/// The same for frames of one size; the last frame fills the last temporal patch.
/// Fails with: kBadData for no frame, frames of different sizes.
[[nodiscard]] troupe::Result<Patches> process_video(std::span<const Picture> frames, const ProcessorConfig& config);

}  // namespace qwen_vl
