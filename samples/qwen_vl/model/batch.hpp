#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/base/result.hpp>
#include <troupe/torch/packed.hpp>

#include "config.hpp"
#include "grid.hpp"

namespace qwen_vl {

/// What the language model takes: padded to one length, dim 0 is the sample. Legend: B samples, S tokens.
struct Text {
  at::Tensor ids;         ///< [B, S] i64
  at::Tensor labels;      ///< [B, S] i64: the token that should follow; -100 does not count. Already shifted.
  at::Tensor positions;   ///< [B, 3, S] i64 on the axes of M-RoPE; 0 where padded.
  at::Tensor mask;        ///< [B, S] bool, false where padded.
  std::vector<std::int64_t> padded;                    ///< By sample: masked tokens. Host integers (NUM-6).
  std::vector<std::vector<std::int64_t>> counted;      ///< By sample: where a label counts.
  std::vector<std::vector<std::int64_t>> columns;      ///< By sample: the place of each picture token, in window order.
  static auto troupe_fields(auto& self) {
    return std::tie(self.ids, self.labels, self.positions, self.mask, self.padded, self.counted, self.columns);
  }
};

/// One global batch as the graph takes it. Every window is an item of its own, so that sp cuts between windows; ids
/// rise with the sample, then the picture, then the frame, then the window: see frame_of().
struct Batch {
  troupe::Packed patches;       ///< [patches, patch values]
  troupe::Packed coordinates;   ///< [patches, 2] i64: row and column in the picture, for the tower's rope.
  Text text;
  static auto troupe_fields(auto& self) { return std::tie(self.patches, self.coordinates, self.text); }
};

/// The frame that a window belongs to, numbered through the batch: full attention is inside a frame.
[[nodiscard]] constexpr std::int64_t frame_of(std::int64_t window_id) noexcept { return window_id >> 24; }

/// A batch as transformers takes it: the inputs of `qwen_vl verify`, and what the sources make.
struct RawBatch {
  at::Tensor input_ids;             ///< [B, S] i64
  at::Tensor labels;                ///< [B, S] i64, not shifted; -100 does not count.
  at::Tensor attention_mask;        ///< [B, S], 0 where padded; may be undefined.
  at::Tensor pixel_values;          ///< [patches, patch values] of all images; undefined: none.
  std::vector<Grid> images;
  at::Tensor pixel_values_videos;   ///< The same of all videos.
  std::vector<Grid> videos;
  std::vector<double> seconds;      ///< By video: seconds per grid step in time; empty: 1.
  bool single_seconds = false;      ///< `seconds` came in fp32.
};

struct Assembled {
  Batch batch;
  /// original[i]: which merged token in the original order (all images, then all videos) row i of the tower's whole
  /// output is.
  std::vector<std::int64_t> original;
};

/// Brings a batch into the graph's form: windows, coordinates, positions, where picture tokens go.
/// Fails with: kMismatch naming what disagrees: shapes; placeholders against pictures (sample, picture, counts);
/// kBadData for ids or labels outside the vocabulary.
[[nodiscard]] troupe::Result<Assembled> assemble(const RawBatch& raw, const ModelConfig& config, VideoPositions video = VideoPositions::kTransformers5);

}  // namespace qwen_vl
