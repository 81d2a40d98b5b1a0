#pragma once

#include <string>

#include "batch.hpp"

namespace qwen_vl {

/// Reads the inputs of `qwen_vl verify` from a safetensors file: input_ids, labels [B, S] i64; attention_mask;
/// pixel_values, pixel_values_videos [patches, patch values]; image_grid_thw, video_grid_thw [n, 3];
/// second_per_grid_ts [videos]. All but the first two may be missing.
/// Fails with: what the file has wrong; kMismatch for keys that are unknown, missing or of another kind.
[[nodiscard]] troupe::Result<RawBatch> read_batch(const std::string& path);

}  // namespace qwen_vl
