#pragma once

#include <memory>

#include <troupe/actors/rank.hpp>

namespace troupe {

/// What of LibTorch's process-wide or per-thread state Troupe may set: all of it is listed here (EMB).
struct TorchOptions {
  int threads_per_rank = 1;      ///< Intra-op threads of each rank's own thread; others keep theirs.
  /// Replaces LibTorch's process-wide CPU allocator by one that counts the bytes of rank threads and
  /// enforces Resources::gpu_memory_bytes (RES-5); other threads pass through. Off: no peak bytes either.
  bool track_memory = false;
};

/// The surroundings of ranks that compute with LibTorch: backward on the calling thread, thread counts,
/// budgets. For RuntimeOptions::environment.
[[nodiscard]] std::shared_ptr<RankEnvironment> torch_environment(TorchOptions options = {});

}  // namespace troupe
