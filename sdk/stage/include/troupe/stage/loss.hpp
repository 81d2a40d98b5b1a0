#pragma once

#include <cstdint>
#include <tuple>

#include <ATen/core/Tensor.h>

namespace troupe {

/// What a stage that ends the graph returns for the samples its rank holds.
/// Identical over axes whose members hold the same samples (tp, sp), summed over those the samples are
/// sharded on (dp). Backward is seeded with 1; the optimizer step multiplies once by 1 / global `valid`,
/// so the loss is the mean over all valid elements of the global batch, whatever the mix of masks,
/// micro-batches and ranks (NUM-2).
struct Loss {
  at::Tensor sum;           ///< 0-dim, with its graph.
  std::int64_t valid = 0;   ///< How many elements (tokens with a label) were summed: a host integer (NUM-6).
  static auto troupe_fields(auto& self) { return std::tie(self.sum, self.valid); }
};

}  // namespace troupe
