#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace troupe {

/// What one optimizer step did. Read once, after the barrier.
struct StepReport {
  std::int64_t step = 0;               ///< From 1.
  double loss = 0;                     ///< Mean over all valid elements of the global batch.
  std::int64_t valid = 0;
  double grad_norm = 0;                ///< Before clipping, of the mean loss, each parameter once (NUM-3).
  double learning_rate = 0;            ///< Of the first group.
  std::int64_t samples = 0;
  /// Longest over the stage's ranks: "vision.forward", "vision.backward", "vision.reduce", "vision.apply";
  /// and "step", on the driver.
  std::map<std::string, double> seconds;
  struct EdgeBytes {
    std::int64_t referenced = 0;       ///< Handed over without a copy.
    std::int64_t copied = 0;
  };
  std::map<std::string, EdgeBytes> bytes_by_edge;  ///< "vision -> language.in1", and "... (gradient)".
  std::map<std::string, std::vector<std::int64_t>> peak_bytes;  ///< By stage, per rank; empty when not tracked.
  std::vector<std::string> skipped_stages;         ///< No rank saw an element: parameters untouched (EDG-3).
};

}  // namespace troupe
