#pragma once

#include <cstdint>
#include <string>

#include <troupe/base/result.hpp>

#include "common/settings.hpp"

namespace qwen_vl {

/// Everything `qwen_vl train` can be told, by file (--config) or flag; flags win.
struct TrainConfig {
  std::string data = "/usr/share/tuxpaint/stamps";
  std::string model;                      ///< Checkpoint folder to start from; empty: a small new model, with a vocabulary made of the data's words.
  std::string out = "qwen_vl-out";
  std::string question = "What is this?";
  std::int64_t steps = 300;
  std::int64_t batch = 8;
  std::int64_t micro_batches = 1;
  std::int64_t limit = 0;
  std::int64_t seed = 7;
  std::int64_t log_every = 10;
  std::int64_t save_every = 100;
  std::int64_t max_tokens = 512;
  std::int64_t shown = 8;                 ///< Answers generated at the end.
  double vision_learning_rate = 1e-3;
  double language_learning_rate = 1e-3;
  double weight_decay = 0.01;
  double clip = 1;
  double rank_gib = 0;                    ///< Memory that a rank may hold; 0: an even part of the machine's.
  std::string vision = "sp=2";
  std::string language = "tp=2";
  std::string dtype = "float32";
  bool resume = false;
  std::int64_t width = 128;               ///< Of a new model; heads are 32 wide.
  std::int64_t layers = 4;
  std::int64_t vocabulary = 1024;
  std::int64_t max_pixels = 112 * 112;
};

[[nodiscard]] samples::Settings settings_of(TrainConfig& config);

/// Fails with: kInvalidArgument naming the setting, expected and got.
[[nodiscard]] troupe::Result<void> check(const TrainConfig& config);

}  // namespace qwen_vl
