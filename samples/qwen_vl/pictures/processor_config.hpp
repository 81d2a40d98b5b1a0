#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <troupe/base/result.hpp>

namespace qwen_vl {

/// How pictures become patches; defaults as Qwen2.5-VL's own preprocessor_config.json has them.
struct ProcessorConfig {
  std::int64_t patch = 14;            ///< Pixels a side.
  std::int64_t temporal_patch = 2;    ///< Frames.
  std::int64_t merge = 2;             ///< Patches a side that become one token.
  std::int64_t min_pixels = 3136;     ///< Of a resized picture; of a frame for videos.
  std::int64_t max_pixels = 12845056;
  std::array<double, 3> mean = {0.48145466, 0.4578275, 0.40821073};
  std::array<double, 3> deviation = {0.26862954, 0.26130258, 0.27577711};
  friend bool operator==(const ProcessorConfig&, const ProcessorConfig&) = default;
};

/// Whose defaults a file without bounds has in transformers.
enum class ProcessorKind : std::uint8_t { kImage, kVideo };

/// What a checkpoint folder says of pictures: "image_processor" of processor_config.json (transformers 5), else preprocessor_config.json.
/// Bounds are min_pixels and max_pixels, or size's shortest_edge and longest_edge. Keys that change nothing here are passed over.
/// Fails with: kIo when neither is there; kBadData; kInvalidArgument naming the file, the key, expected and got, also for steps that are not done here.
[[nodiscard]] troupe::Result<ProcessorConfig> read_processor_config(const std::string& folder);

/// What it says of videos: "video_processor" of processor_config.json, else video_preprocessor_config.json, else preprocessor_config.json. Fails as the above.
[[nodiscard]] troupe::Result<ProcessorConfig> read_video_processor_config(const std::string& folder);

/// The content of such a file.
[[nodiscard]] troupe::Result<ProcessorConfig> parse_processor_config(const std::string& json, const std::string& name, ProcessorKind kind = ProcessorKind::kImage);

/// A preprocessor_config.json for `config`, which transformers reads.
[[nodiscard]] std::string processor_config_json(const ProcessorConfig& config);

}  // namespace qwen_vl
