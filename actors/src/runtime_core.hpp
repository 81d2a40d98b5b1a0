#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "caf_front.hpp"
#include "pool_core.hpp"
#include "worker/worker_set.hpp"

namespace troupe::detail {

/// What a Runtime handle shares. Thread: any.
class RuntimeCore {
 public:
  explicit RuntimeCore(RuntimeOptions options);
  ~RuntimeCore();

  [[nodiscard]] Result<std::shared_ptr<PoolCore>> make_pool(PoolOptions options, PoolClass made);
  [[nodiscard]] Result<void> shutdown(Duration deadline);
  [[nodiscard]] RuntimeStatus status();
  /// The actor world of this runtime, started on first use.
  [[nodiscard]] Result<std::shared_ptr<CafWorld>> caf();

  /// Starts what the options ask for beside this process. Once, first.
  [[nodiscard]] Result<void> start();

  const RuntimeOptions options;
  const std::shared_ptr<Services> services;

 private:
  void reap(Duration patience);
  [[nodiscard]] Result<Placement> place_pool(const PoolOptions& options);

  std::shared_ptr<Executor> executor_;
  std::mutex mutex_;
  Cluster cluster_;
  std::vector<std::shared_ptr<PoolCore>> pools_;
  std::shared_ptr<CafWorld> caf_;
  std::shared_ptr<WorkerSet> workers_;
  std::uint64_t next_pool_ = 1;
  bool closed_ = false;
};

}  // namespace troupe::detail
