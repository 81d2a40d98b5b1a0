#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include <troupe/transport/operation.hpp>

#include "services.hpp"

namespace troupe::transport {

/// The completion of one operation: whoever comes first of peer, close and deadline ends it (TRN-2).
/// Backends derive from it what they keep per operation, so that one allocation serves both.
/// Thread: any.
class Operation::State {
 public:
  State(const Services& services, Deadline deadline)
      : clock_(services.clock), executor_(services.executor), deadline_(deadline), completed_(*clock_) {}
  virtual ~State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// Ends the operation: true for exactly one caller, whose result stands. Not under a lock: it may wake
  /// and post, and what `result` replaces is destroyed here.
  bool complete(Result<Transferred> result);

  [[nodiscard]] bool done() const noexcept { return done_.load(std::memory_order_acquire); }
  [[nodiscard]] Deadline deadline() const noexcept { return deadline_; }
  [[nodiscard]] bool wait_until(Deadline until);
  [[nodiscard]] Result<Transferred> wait();
  void then(Done done);

 protected:
  /// The deadline has passed while wait() watched: must complete the operation. Called without a lock.
  virtual void expire();

 private:
  [[nodiscard]] std::shared_ptr<Done> post(Done done);

  const std::shared_ptr<Clock> clock_;
  Executor* const executor_;
  const Deadline deadline_;
  std::atomic<bool> done_{false};
  std::mutex mutex_;
  Condition completed_;
  std::optional<Result<Transferred>> result_;  // written once, before done_
  Done then_;
};

/// An operation that has ended before it was handed out.
[[nodiscard]] Operation ended_operation(const Services& services, Result<Transferred> result);

}  // namespace troupe::transport
