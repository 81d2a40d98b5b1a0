#include <utility>

#include "scheduler.hpp"

namespace troupe::explore {
namespace {

class SeededClock final : public Clock {
 public:
  explicit SeededClock(std::shared_ptr<Scheduler> scheduler) : scheduler_(std::move(scheduler)) {}

  TimePoint now() const noexcept override {
    if (Runner* me = mine()) scheduler_->look_at_time(*me);
    return scheduler_->now();
  }

  void block(Condition& condition, std::unique_lock<std::mutex>& lock, Deadline until, CallSite at) override {
    Runner& me = must_be_mine();
    scheduler_->point(me, Kind::kWait);  // between the look at the condition and the wait: where wakes get lost
    // waits before it unlocks: no wake can fall between the two
    me.state = State::kCondition;
    me.on = &condition;
    lock.unlock();
    scheduler_->block(me, State::kCondition, Kind::kWait, &condition, until, at);
    lock.lock();
  }

  void wake(Condition& condition) noexcept override {
    if (Runner* me = mine()) {
      scheduler_->point(*me, Kind::kWake);
    } else if (!scheduler_->over()) {
      return scheduler_->intruded();
    }
    scheduler_->wake(&condition, State::kCondition);
  }

  std::thread start(const std::string& name, std::function<void()> body) override {
    (void)must_be_mine();
    return scheduler_->start(*threads_, name, std::move(body));
  }

  void join(std::thread& thread) override {
    if (Runner* me = mine()) return scheduler_->join(*me, thread);
    thread.join();
  }

 private:
  [[nodiscard]] Runner* mine() const noexcept {
    Runner* const me = current_runner();
    return me != nullptr && me->scheduler == scheduler_.get() ? me : nullptr;
  }
  [[nodiscard]] Runner& must_be_mine() const {
    if (Runner* me = mine()) return *me;
    scheduler_->intruded();
    throw Exception({Errc::kInvalidArgument, "a thread that is none of the run's waits or starts threads on its clock: start it with troupe::Thread on trial.clock()"});
  }

  std::shared_ptr<Scheduler> scheduler_;
  std::shared_ptr<Clock> threads_ = system_clock();
};

}  // namespace

std::shared_ptr<Clock> seeded_clock(std::shared_ptr<Scheduler> scheduler) { return std::make_shared<SeededClock>(std::move(scheduler)); }

}  // namespace troupe::explore
