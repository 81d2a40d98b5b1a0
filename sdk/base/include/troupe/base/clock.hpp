#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace troupe {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

/// A point in time by which a wait ends. Every wait has one; `never()` is written out where it is meant.
class Deadline {
 public:
  static constexpr Deadline never() { return Deadline(TimePoint::max()); }
  static constexpr Deadline at(TimePoint time) { return Deadline(time); }

  [[nodiscard]] constexpr bool is_never() const { return time_ == TimePoint::max(); }
  [[nodiscard]] constexpr TimePoint time() const { return time_; }
  friend constexpr auto operator<=>(Deadline, Deadline) = default;

 private:
  explicit constexpr Deadline(TimePoint time) : time_(time) {}
  TimePoint time_;
};

/// The line of code that waits: what a report of threads that wait shows.
struct CallSite {
  const char* file = "";
  int line = 0;
  [[nodiscard]] static constexpr CallSite here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

class Condition;

/// The one interface through which the project reads time, blocks and starts threads.
/// The system's clock is the default; a test runtime supplies one that lets a single thread run at a
/// time, in an order drawn from a seed, with virtual time; a rehearsal one that adds model time.
/// Thread: any.
class Clock {
 public:
  virtual ~Clock() = default;

  [[nodiscard]] virtual TimePoint now() const noexcept = 0;

  /// Gives a wait the chance to end without a sleep: returns after a short while at most, with `lock` held
  /// again; the condition is then asked once more. Called by Condition only.
  virtual void yield(Condition& condition, std::unique_lock<std::mutex>& lock, Deadline until);

  /// Blocks the caller on `condition` until woken or past `until`; may wake early. `lock` is held
  /// on entry and on return; `at` is the wait, for reports. Called by Condition only.
  virtual void block(Condition& condition, std::unique_lock<std::mutex>& lock, Deadline until, CallSite at) = 0;

  /// Wakes every thread blocked on `condition`. Called by Condition only.
  virtual void wake(Condition& condition) noexcept = 0;

  /// Starts a thread with all signals blocked (EMB) and `name` (15 characters show). Called by Thread only.
  virtual std::thread start(const std::string& name, std::function<void()> body) = 0;

  /// Waits for the end of a thread that start() made: it is a wait like any other. Called by Thread only.
  virtual void join(std::thread& thread);

  /// `now() + duration`; a duration too long to add is never().
  [[nodiscard]] Deadline after(Duration duration) const noexcept;
};

/// The operating system's monotonic clock and threads. A wait yields for up to `spin` before it sleeps: a
/// thread that sleeps is woken in 5 to 40 us, one that yields sees the change in about 1, on its own core and
/// on another's; the yields leave the core to whoever has work.
[[nodiscard]] std::shared_ptr<Clock> system_clock(Duration spin = std::chrono::microseconds(20));

/// A condition variable whose waits and wake-ups pass through a Clock.
class Condition {
 public:
  explicit Condition(Clock& clock) : clock_(&clock) {}
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;

  /// Waits until `ready()`; false when the deadline passed first. `ready` runs under `lock`.
  template <class Ready>
  [[nodiscard]] bool wait(std::unique_lock<std::mutex>& lock, Deadline until, Ready ready, CallSite at = CallSite::here()) {
    for (bool yielded = false; !ready();) {
      if (!until.is_never() && clock_->now() >= until.time()) return false;
      if (yielded) {
        clock_->block(*this, lock, until, at);
      } else {
        clock_->yield(*this, lock, until);
        yielded = true;
      }
    }
    return true;
  }

  void notify_all() noexcept { clock_->wake(*this); }

  /// For implementations of Clock.
  [[nodiscard]] std::condition_variable& native() noexcept { return native_; }
  [[nodiscard]] std::atomic<std::uint32_t>& wakes() noexcept { return wakes_; }

 private:
  Clock* clock_;
  std::condition_variable native_;
  std::atomic<std::uint32_t> wakes_{0};
};

/// A thread that must be joined, or left on purpose, before its handle goes. Its clock outlives the handle.
class Thread {
 public:
  Thread() = default;
  Thread(Clock& clock, const std::string& name, std::function<void()> body)
      : clock_(&clock), thread_(clock.start(name, std::move(body))) {}

  [[nodiscard]] bool joinable() const noexcept { return thread_.joinable(); }
  [[nodiscard]] bool is_current() const noexcept { return thread_.get_id() == std::this_thread::get_id(); }
  void join() { clock_->join(thread_); }
  /// Lets the thread outlive its handle: only for what shutdown lists as stuck (SUP-8). Its body must
  /// own all it touches.
  void leave() { thread_.detach(); }

 private:
  Clock* clock_ = nullptr;
  std::thread thread_;
};

}  // namespace troupe
