#pragma once

#include <cstdint>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include <troupe/stage/report.hpp>
#include <troupe/train/report.hpp>

#include "train_config.hpp"

namespace qwen_vl {

/// A generated answer beside what the data say.
struct Answer {
  std::string picture;   ///< Path of the first; empty: none.
  std::string question, truth, generated;
};

struct Training {
  std::vector<double> losses;               ///< By step, those before a resume included.
  std::int64_t first_step = 1;              ///< Of this run.
  double seconds = 0;                       ///< Of this run's steps.
  std::int64_t patches = 0, tokens = 0;     ///< Of this run.
  troupe::StepReport last;                  ///< Of the last step: bytes, peaks, seconds by phase.
  std::int64_t vision_parameters = 0, language_parameters = 0;
  std::vector<troupe::ReportStage> stages;  ///< Layouts, for the report.
  std::vector<Answer> answers;
  bool stopped = false;
  std::string folder;                       ///< Of the model.
};

/// The whole job: data, model, steps with checkpoints, the model's folder, answers. Prints progress on stdout. A stop ends it after the step under
/// way; a checkpoint is left then.
[[nodiscard]] troupe::Result<Training> train(const TrainConfig& config, std::stop_token stop);

}  // namespace qwen_vl
