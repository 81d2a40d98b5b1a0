#include <troupe/base/executor.hpp>

#include <deque>
#include <map>
#include <utility>

namespace troupe {

struct Executor::State {
  explicit State(std::shared_ptr<Clock> c) : clock(std::move(c)), wake(*clock) {}

  std::shared_ptr<Clock> clock;
  std::mutex mutex;
  Condition wake;
  std::deque<Task> ready;
  std::map<std::pair<TimePoint, TimerId>, Task> timers;
  std::map<TimerId, TimePoint> due;
  TimerId next_timer = 1;
  bool stopping = false;
  std::mutex joining;  ///< Two threads may stop at the same time; one joins.
  Thread thread;

  /// Moves timers that are due behind the posted tasks; the deadline of the next one.
  Deadline collect_due() {
    while (!timers.empty()) {
      auto first = timers.begin();
      if (first->first.first > clock->now()) return Deadline::at(first->first.first);
      due.erase(first->first.second);
      ready.push_back(std::move(first->second));
      timers.erase(first);
    }
    return Deadline::never();
  }

  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      const Deadline next = stopping ? Deadline::never() : collect_due();
      if (!ready.empty()) {
        Task task = std::move(ready.front());
        ready.pop_front();
        lock.unlock();
        task();
        task = nullptr;  // captures go outside the lock
        lock.lock();
      } else if (stopping) {
        return;
      } else {
        const TimerId known = next_timer;
        (void)wake.wait(lock, next, [&] { return stopping || !ready.empty() || next_timer != known; });
      }
    }
  }
};

Executor::Executor(std::shared_ptr<Clock> clock, const std::string& name)
    : state_(std::make_unique<State>(std::move(clock))) {
  state_->thread = Thread(*state_->clock, name, [state = state_.get()] { state->run(); });
}

Executor::~Executor() { stop(); }

bool Executor::post(Task task) {
  std::lock_guard lock(state_->mutex);
  if (state_->stopping) return false;
  state_->ready.push_back(std::move(task));
  state_->wake.notify_all();
  return true;
}

Executor::TimerId Executor::post_at(Deadline when, Task task) {
  std::lock_guard lock(state_->mutex);
  const TimerId id = state_->next_timer++;
  if (state_->stopping || when.is_never()) return id;
  state_->timers.emplace(std::pair(when.time(), id), std::move(task));
  state_->due.emplace(id, when.time());
  state_->wake.notify_all();
  return id;
}

bool Executor::cancel(TimerId id) {
  Task dropped;  // its captures go outside the lock: they may post, or cancel (SUP-7)
  std::lock_guard lock(state_->mutex);
  const auto found = state_->due.find(id);
  if (found == state_->due.end()) return false;
  dropped = std::move(state_->timers.extract({found->second, id}).mapped());
  state_->due.erase(found);
  return true;
}

void Executor::stop() {
  {
    std::lock_guard lock(state_->mutex);
    state_->stopping = true;
    state_->wake.notify_all();
  }
  {
    std::lock_guard only_one(state_->joining);
    if (state_->thread.joinable()) state_->thread.join();
  }
  decltype(state_->timers) dropped;  // as in cancel()
  std::lock_guard lock(state_->mutex);
  dropped.swap(state_->timers);
  state_->due.clear();
}

Clock& Executor::clock() noexcept { return *state_->clock; }

}  // namespace troupe
