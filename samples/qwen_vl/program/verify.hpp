#pragma once

#include <functional>
#include <map>
#include <string>

#include "parallelize.hpp"

namespace qwen_vl {

/// How verify() runs. The batch is the same at every step.
struct VerifyOptions {
  LayoutOptions layout = {};
  int steps = 3;
  int micro_batches = 1;
  double learning_rate = 1e-3;
  double weight_decay = 0.01;
  VideoPositions video = VideoPositions::kTransformers5;
};

/// Sets the model's parameters, e.g. from a checkpoint folder.
using LoadModel = std::function<troupe::Result<void>(Model&)>;

/// Trains on one batch and returns what a user compares with another implementation, by name: loss, grad_norm (0-dim
/// fp64), position_ids [3, B, S], vision_tokens (merged, original order: all images, then all videos), logits
/// [B, S, V] of the first forward, grad.<name> after the first backward (of the mean loss; zeros for a module that saw
/// nothing), param.<name> after the last AdamW step (0.9, 0.999, 1e-8, no clipping). Names as in the checkpoint.
/// Fails with what the batch, the layout or any rank fails with.
[[nodiscard]] troupe::Result<std::map<std::string, at::Tensor>> verify(const ModelConfig& config, const LoadModel& load, const RawBatch& batch, const VerifyOptions& options);

}  // namespace qwen_vl
