#pragma once

#include <functional>
#include <string>
#include <vector>

#include <troupe/testing/parity.hpp>

#include "support/modules.hpp"

namespace troupe::test {

struct TwoStageBatch {
  Packed patches;
  Text text;
  static auto troupe_fields(auto& self) { return std::tie(self.patches, self.text); }
};

/// An encoder and a decoder, each in its own mesh, trained on one repeated batch.
struct TwoStageOptions {
  Mesh encoder = {};
  Mesh decoder = {};
  std::vector<std::int64_t> items = {8, 2, 14, 6, 4, 10, 2};  ///< Rows; item i is of sample i % samples.
  std::int64_t samples = 5;
  int micro_batches = 1;
  int steps = 3;
  bool level_b = false;              ///< The same steps by tapes.
  double clip = 0;
};

/// Losses, gradients and parameters of both stages.
[[nodiscard]] testing::ParityRun run_two_stage(const TwoStageOptions& options);

/// Bytes of the run's edges and what was skipped, of its last step.
struct TwoStageTrace {
  testing::ParityRun run;
  StepReport last;
};
[[nodiscard]] TwoStageTrace trace_two_stage(const TwoStageOptions& options);

}  // namespace troupe::test
