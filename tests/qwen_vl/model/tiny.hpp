#pragma once

#include <cstdint>
#include <vector>

#include <ATen/ATen.h>

#include "batch.hpp"

namespace qwen_vl {

/// A model with sizes that divide nothing: 3 vision heads, 3 language heads over 1 kv head, vocabulary 163.
inline ModelConfig tiny_config() {
  ModelConfig out;
  out.vision = {.depth = 3, .hidden = 24, .heads = 3, .intermediate = 34, .out_hidden = 24, .patch = 4, .window = 16, .full_attention = {1}};
  out.language = {.layers = 2, .hidden = 24, .heads = 3, .kv_heads = 1, .head_dim = 8, .intermediate = 37, .vocabulary = 163, .sections = {2, 1, 1}};
  out.tokens = {.image = 151, .video = 152, .vision_start = 153, .vision_end = 154, .end_of_text = 155, .end_of_turn = 156};
  return out;
}

/// Numbers without a pattern that anything could lean on.
inline at::Tensor noise(std::vector<std::int64_t> sizes, double phase) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return at::arange(count, at::kDouble).add(phase).mul(12.9898).sin().mul(43758.5453).frac().view(sizes);
}

/// Sample by sample: the pictures in it; text before, between and after; the last `padded` tokens masked.
struct TinySample {
  std::vector<Grid> images = {};
  std::vector<Grid> videos = {};
  std::int64_t text = 5;
  bool no_labels = false;
};

inline RawBatch tiny_batch(const ModelConfig& config, const std::vector<TinySample>& samples) {
  RawBatch out;
  std::vector<std::vector<std::int64_t>> lines;
  std::int64_t number = 0;
  const auto word = [&] { return (number++ * 37 + 11) % 150; };
  for (const auto& sample : samples) {
    auto& line = lines.emplace_back();
    line.push_back(word());
    for (const bool is_video : {false, true}) {
      for (const Grid& grid : is_video ? sample.videos : sample.images) {
        line.push_back(config.tokens.vision_start);
        line.insert(line.end(), static_cast<std::size_t>(grid.patches() / config.vision.merge_unit()), is_video ? config.tokens.video : config.tokens.image);
        line.push_back(config.tokens.vision_end);
        (is_video ? out.videos : out.images).push_back(grid);
      }
    }
    for (std::int64_t i = 0; i < sample.text; ++i) line.push_back(word());
  }
  std::size_t longest = 0;
  for (const auto& line : lines) longest = std::max(longest, line.size());
  const auto count = static_cast<std::int64_t>(samples.size());
  out.input_ids = at::full({count, static_cast<std::int64_t>(longest)}, config.tokens.end_of_text, at::kLong);
  out.labels = at::full_like(out.input_ids, -100);
  out.attention_mask = at::zeros_like(out.input_ids);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto length = static_cast<std::int64_t>(lines[i].size());
    const at::Tensor row = at::tensor(lines[i], at::kLong);
    const auto at_row = static_cast<std::int64_t>(i);
    out.input_ids[at_row].narrow(0, 0, length).copy_(row);
    out.attention_mask[at_row].narrow(0, 0, length).fill_(1);
    const std::int64_t answer = std::max<std::int64_t>(1, samples[i].text - 2);
    if (!samples[i].no_labels) out.labels[at_row].narrow(0, length - answer, answer).copy_(row.narrow(0, length - answer, answer));
  }
  std::int64_t images = 0, videos = 0;
  for (const Grid& grid : out.images) images += grid.patches();
  for (const Grid& grid : out.videos) videos += grid.patches();
  out.pixel_values = noise({images, config.vision.patch_values()}, 1);
  out.pixel_values_videos = noise({videos, config.vision.patch_values()}, 2);
  return out;
}

/// Two images, none, a video with an image, one image of a single merge unit.
inline std::vector<TinySample> mixed_samples() {
  return {{.images = {{1, 6, 10}, {1, 4, 2}}}, {.text = 9}, {.images = {{1, 2, 6}}, .videos = {{3, 4, 6}}, .text = 4}, {.images = {{1, 2, 2}}, .text = 3, .no_labels = true}};
}

}  // namespace qwen_vl
