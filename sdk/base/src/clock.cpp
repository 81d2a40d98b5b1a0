#include <troupe/base/clock.hpp>

#include <csignal>
#include <utility>

#include <pthread.h>

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
  TimePoint now() const noexcept override { return std::chrono::steady_clock::now(); }

  void block(Condition& condition, std::unique_lock<std::mutex>& lock, Deadline until) override {
    if (until.is_never()) {
      condition.native().wait(lock);
    } else {
      condition.native().wait_until(lock, until.time());
    }
  }

  void wake(Condition& condition) noexcept override { condition.native().notify_all(); }

  std::thread start(const std::string& name, std::function<void()> body) override {
    BlockSignals guard;
    std::thread thread(std::move(body));
    pthread_setname_np(thread.native_handle(), name.substr(0, 15).c_str());
    return thread;
  }
};

}  // namespace

Deadline Clock::after(Duration duration) const noexcept {
  const TimePoint start = now();
  if (duration >= TimePoint::max() - start) return Deadline::never();
  return Deadline::at(start + duration);
}

std::shared_ptr<Clock> system_clock() { return std::make_shared<SystemClock>(); }

}  // namespace troupe
