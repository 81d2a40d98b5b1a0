#pragma once

#include <string>

#include "prepare.hpp"
#include "train_config.hpp"

namespace qwen_vl {

/// A small model of this shape for the data at hand: its vocabulary is learned from the conversations, its sizes come from `config`.
/// Fails with: what the data have wrong; kInvalidArgument for a vocabulary that is too small.
[[nodiscard]] troupe::Result<Preparation> new_model(const TrainConfig& config);

}  // namespace qwen_vl
