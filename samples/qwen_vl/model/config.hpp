#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <troupe/base/result.hpp>

namespace qwen_vl {

/// The vision tower of Qwen2.5-VL, as its config.json says it. Defaults as published.
struct VisionConfig {
  std::int64_t depth = 32;
  std::int64_t hidden = 1280;
  std::int64_t heads = 16;
  std::int64_t intermediate = 3420;
  std::int64_t out_hidden = 3584;        ///< The width of the language model.
  std::int64_t channels = 3;
  std::int64_t patch = 14;               ///< Pixels a side.
  std::int64_t temporal_patch = 2;       ///< Frames.
  std::int64_t merge = 2;                ///< Patches a side that become one token.
  std::int64_t window = 112;             ///< Pixels a side inside which most blocks attend.
  std::vector<std::int64_t> full_attention = {7, 15, 23, 31};   ///< The blocks that attend over the whole frame.
  double rope_theta = 1e4;
  double initial_deviation = 0.02;

  [[nodiscard]] std::int64_t head_dim() const noexcept { return hidden / heads; }
  [[nodiscard]] std::int64_t merge_unit() const noexcept { return merge * merge; }
  /// Values of one patch row: channels x temporal_patch x patch x patch.
  [[nodiscard]] std::int64_t patch_values() const noexcept { return channels * temporal_patch * patch * patch; }
  /// Merged tokens a side of a window.
  [[nodiscard]] std::int64_t window_tokens() const noexcept { return window / merge / patch; }

  static auto troupe_fields(auto& self) {
    return std::tie(self.depth, self.hidden, self.heads, self.intermediate, self.out_hidden, self.channels, self.patch, self.temporal_patch, self.merge,
                    self.window, self.full_attention, self.rope_theta, self.initial_deviation);
  }
};

/// The language model of Qwen2.5-VL.
struct LanguageConfig {
  std::int64_t layers = 28;
  std::int64_t hidden = 3584;
  std::int64_t heads = 28;
  std::int64_t kv_heads = 4;
  std::int64_t head_dim = 128;
  std::int64_t intermediate = 18944;
  std::int64_t vocabulary = 152064;
  bool tied = false;                     ///< The head is the embedding.
  double rope_theta = 1e6;
  std::vector<std::int64_t> sections = {16, 24, 24};   ///< Frequencies turned by time, row and column: adds up to head_dim / 2.
  double epsilon = 1e-6;
  double initial_deviation = 0.02;

  static auto troupe_fields(auto& self) {
    return std::tie(self.layers, self.hidden, self.heads, self.kv_heads, self.head_dim, self.intermediate, self.vocabulary, self.tied, self.rope_theta,
                    self.sections, self.epsilon, self.initial_deviation);
  }
};

/// Ids with a meaning, from the config.
struct TokenIds {
  std::int64_t image = 151655;
  std::int64_t video = 151656;
  std::int64_t vision_start = 151652;
  std::int64_t vision_end = 151653;
  std::int64_t end_of_text = 151643;     ///< Pads, too.
  std::int64_t end_of_turn = 151645;
};

struct ModelConfig {
  VisionConfig vision;
  LanguageConfig language;
  TokenIds tokens;
  double tokens_per_second = 2;          ///< Steps of the time axis in a second of video.
};

/// Reads `folder`/config.json, flat as published or nested as transformers 5 writes it. Nothing is hard-wired; what
/// the model cannot do (sliding windows, another activation, another rope) is refused, not ignored.
/// Fails with: kIo, kBadData (not JSON), kInvalidArgument naming the file, the key, expected and got.
[[nodiscard]] troupe::Result<ModelConfig> read_config(const std::string& folder);

/// The same from text; `name` is for messages.
[[nodiscard]] troupe::Result<ModelConfig> parse_config(const std::string& json, const std::string& name);

/// config.json in the published flat form, which transformers of all versions read.
[[nodiscard]] std::string config_json(const ModelConfig& config);

/// Fails with: kInvalidArgument for sizes that do not fit each other, naming both.
[[nodiscard]] troupe::Result<void> check(const ModelConfig& config);

}  // namespace qwen_vl
