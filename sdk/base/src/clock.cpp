#include <troupe/base/clock.hpp>

#include <csignal>
#include <utility>

#include <pthread.h>
#include <sched.h>

namespace troupe {
namespace {

/// Signals belong to the host: a thread started here inherits a mask that blocks them all (EMB).
class BlockSignals {
 public:
  BlockSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockSignals(const BlockSignals&) = delete;
  BlockSignals& operator=(const BlockSignals&) = delete;

 private:
  sigset_t before_{};
};

class SystemClock final : public Clock {
 public:
  explicit SystemClock(Duration spin) : spin_(spin) {}

  TimePoint now() const noexcept override { return std::chrono::steady_clock::now(); }

  void block(Condition& condition, std::unique_lock<std::mutex>& lock, Deadline until) override {
    if (yields_see_a_wake(condition, lock, until)) return;
    if (until.is_never()) {
      condition.native().wait(lock);
    } else {
      condition.native().wait_until(lock, until.time());
    }
  }

  void wake(Condition& condition) noexcept override {
    condition.wakes().fetch_add(1, std::memory_order_release);
    condition.native().notify_all();
  }

  std::thread start(const std::string& name, std::function<void()> body) override {
    BlockSignals guard;
    std::thread thread(std::move(body));
    pthread_setname_np(thread.native_handle(), name.substr(0, 15).c_str());
    return thread;
  }

 private:
  /// With the lock held again on return. No wake is lost: whoever changes what is waited for holds the
  /// lock while it does and wakes after, so a count that stands still under the lock means that the wake is
  /// yet to come.
  bool yields_see_a_wake(Condition& condition, std::unique_lock<std::mutex>& lock, Deadline until) {
    if (spin_ <= Duration::zero()) return false;
    const std::uint32_t before = condition.wakes().load(std::memory_order_acquire);
    lock.unlock();
    const TimePoint end = now() + spin_;
    bool woken = false;
    do {
      sched_yield();
      woken = condition.wakes().load(std::memory_order_acquire) != before;
    } while (!woken && now() < end);
    lock.lock();
    return woken || condition.wakes().load(std::memory_order_acquire) != before || (!until.is_never() && now() >= until.time());
  }

  Duration spin_;
};

}  // namespace

Deadline Clock::after(Duration duration) const noexcept {
  const TimePoint start = now();
  if (duration >= TimePoint::max() - start) return Deadline::never();
  return Deadline::at(start + duration);
}

std::shared_ptr<Clock> system_clock(Duration spin) { return std::make_shared<SystemClock>(spin); }

}  // namespace troupe
