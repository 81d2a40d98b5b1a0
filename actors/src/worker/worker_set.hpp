#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <troupe/actors/worker.hpp>
#include "process/launcher.hpp"
#include "worker.hpp"

namespace troupe::detail {

struct Services;

/// The workers of one runtime: started when it is, started again when a pool needs one that died.
/// Thread: any.
class WorkerSet {
 public:
  /// Fails with: kInvalidArgument (counts, times), what starting a process fails with, kMismatch for another program.
  [[nodiscard]] static Result<std::shared_ptr<WorkerSet>> create(std::shared_ptr<Services> services, WorkerOptions options);
  ~WorkerSet();

  [[nodiscard]] int size() const noexcept { return options_.count; }
  [[nodiscard]] Clock& clock() const;
  /// The living worker `index`; a dead one is started again, as a new incarnation (SUP-4).
  /// Fails with: what starting fails with, kClosed.
  [[nodiscard]] Result<std::shared_ptr<Worker>> living(int index);
  /// Whatever worker `index` is now.
  [[nodiscard]] std::shared_ptr<Worker> at(int index);

  /// Ends every process and joins every thread (SUP-8). Idempotent.
  [[nodiscard]] Result<void> stop(Deadline until);

 private:
  WorkerSet(std::shared_ptr<Services> services, WorkerOptions options, std::unique_ptr<Launcher> launcher);
  [[nodiscard]] Result<std::shared_ptr<Worker>> start(int index, std::uint32_t incarnation);
  void watch();

  struct Slot {
    std::mutex starting;                  ///< One start at a time.
    std::shared_ptr<Worker> worker;       ///< Under mutex_.
  };

  const std::shared_ptr<Services> services_;
  const WorkerOptions options_;
  const std::unique_ptr<Launcher> launcher_;
  std::mutex mutex_;
  Condition changed_;
  std::vector<std::unique_ptr<Slot>> slots_;
  bool stopping_ = false;
  Thread heart_;
};

}  // namespace troupe::detail
