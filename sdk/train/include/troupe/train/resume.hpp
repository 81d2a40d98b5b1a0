#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <troupe/stage/graph.hpp>

namespace troupe {

struct SaveOptions {
  std::string folder;        ///< Checkpoints are folders "step-00000012" in it.
  int keep = 2;              ///< Older complete ones are removed; 0: all are kept.
  std::string note = {};     ///< Kept with the checkpoint, for the program: its config, its curve.
  Duration timeout = std::chrono::minutes(30);
};

/// Writes all that a run needs to go on bit for bit: every parameter, both moments and the number of updates of each,
/// the step, where each source stands, the seed. The folder appears whole or not at all; a run killed
/// meanwhile leaves the one before. Between steps only, on the driver.
/// Returns the checkpoint's folder. Fails with: kIo; kInvalidArgument for a source that can't say where it stands.
[[nodiscard]] Result<std::string> save_training(const Graph& graph, const Optimizer& optimizer, const SaveOptions& options);

/// A checkpoint that is there.
struct SavedTraining {
  std::string path;
  std::int64_t step = 0;
  std::string note;
};

/// The newest complete checkpoint in `folder`; nullopt when there is none. Fails with: kBadData when it is broken.
[[nodiscard]] Result<std::optional<SavedTraining>> latest_training(const std::string& folder);

/// Brings a new graph and optimizer of the same program to where `saved` was. In the layout it was saved in, the run
/// goes on bit for bit; another layout gives the same numbers up to the order of sums.
/// Fails with: kMismatch for another seed, other parameters, shapes or sources, before anything is changed where it
/// can be seen before; kBadData, kIo.
[[nodiscard]] Result<void> resume_training(const Graph& graph, const Optimizer& optimizer, const SavedTraining& saved, Duration timeout = std::chrono::minutes(30));

}  // namespace troupe
