#pragma once

#include <string>

#include <troupe/base/result.hpp>

namespace qwen_vl {

/// `qwen_vl verify`: proves a layout on a user's own model and batch.
struct VerifyCommand {
  std::string model, batch, out;
  std::string vision, language;
  std::string dtype = "float32";
  int steps = 3;
  int micro_batches = 1;
  double learning_rate = 1e-3;
  double weight_decay = 0.01;
  std::string video_positions = "5";
};
/// Returns the JSON line for stdout. Fails with: kInvalidArgument and kBadData, kMismatch, kIo for bad input; else what
/// a rank failed with.
[[nodiscard]] troupe::Result<std::string> run(const VerifyCommand& command);

}  // namespace qwen_vl
