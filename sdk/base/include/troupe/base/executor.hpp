#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <troupe/base/clock.hpp>

namespace troupe {

/// Runs posted functions one after the other on a thread of its own: completions, timers, expiry.
/// One per runtime. Functions must not block or throw.
/// Thread: any.
class Executor {
 public:
  using Task = std::function<void()>;
  using TimerId = std::uint64_t;

  explicit Executor(std::shared_ptr<Clock> clock, const std::string& name = "troupe-exec");
  ~Executor();  ///< Calls stop().
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Runs `task` soon, never inside post(). After stop() it is not run: false tells so.
  bool post(Task task);

  /// Runs `task` once at `when`, unless cancelled first.
  TimerId post_at(Deadline when, Task task);

  /// True when the timer will not run. A timer that is running is not waited for.
  bool cancel(TimerId id);

  /// Runs what was posted before, drops timers, joins the thread. Idempotent. Not from the executor itself.
  void stop();

  [[nodiscard]] Clock& clock() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace troupe
