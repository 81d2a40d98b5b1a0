#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include <troupe/base/result.hpp>

#include "train_config.hpp"

namespace qwen_vl {

// What the program's subcommands are told. run() does the work and returns the JSON line for stdout. It fails with
// kInvalidArgument, kBadData, kMismatch or kIo for bad input, else with what a rank failed with.

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
[[nodiscard]] troupe::Result<std::string> run(const VerifyCommand& command);

/// `qwen_vl generate`: answers a prompt about pictures. Prints the answer on stdout as it is made.
struct GenerateCommand {
  std::string model;
  std::vector<std::string> images;
  std::string prompt, system;
  std::string vision, language;
  std::string dtype = "float32";
  std::int64_t max_tokens = 128;
  double temperature = 0;
  std::int64_t top_k = 0;
  double top_p = 1;
  std::int64_t seed = 0;
};
[[nodiscard]] troupe::Result<std::string> run(const GenerateCommand& command);

/// `qwen_vl eval`: mean loss over the answers of a data set.
struct EvalCommand {
  std::string model, data;
  std::string question = "What is this?";
  std::string vision, language;
  std::string dtype = "float32";
  std::int64_t batch = 8;
  std::int64_t limit = 0;
};
[[nodiscard]] troupe::Result<std::string> run(const EvalCommand& command);

/// `qwen_vl train`: see TrainConfig. The line says whether a signal stopped it ("stopped").
[[nodiscard]] troupe::Result<std::string> run(const TrainConfig& config, const std::stop_token& stop);

}  // namespace qwen_vl
