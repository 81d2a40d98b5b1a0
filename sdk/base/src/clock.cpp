#include <troupe/base/clock.hpp>

#include <algorithm>
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

  void yield(Condition& condition, std::unique_lock<std::mutex>& lock, Deadline until) override {
    if (spin_ <= Duration::zero()) return;
    const std::uint32_t before = condition.wakes().load(std::memory_order_acquire);
    lock.unlock();
    const TimePoint end = std::min(now() + spin_, until.time());
    do {
      sched_yield();
    } while (condition.wakes().load(std::memory_order_acquire) == before && now() < end);
    lock.lock();
  }

  void block(Condition& condition, std::unique_lock<std::mutex>& lock, Deadline until, CallSite /*at*/) override {
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
  Duration spin_;
};

}  // namespace

void Clock::yield(Condition& /*condition*/, std::unique_lock<std::mutex>& /*lock*/, Deadline /*until*/) {}

void Clock::join(std::thread& thread) { thread.join(); }

Deadline Clock::after(Duration duration) const noexcept {
  const TimePoint start = now();
  if (duration >= TimePoint::max() - start) return Deadline::never();
  return Deadline::at(start + duration);
}

std::shared_ptr<Clock> system_clock(Duration spin) { return std::make_shared<SystemClock>(spin); }

}  // namespace troupe
