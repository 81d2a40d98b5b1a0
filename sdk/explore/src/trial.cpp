#include <cassert>
#include <utility>

#include "scheduler.hpp"

namespace troupe::explore {
namespace {

Runner& me() {
  Runner* const runner = current_runner();
  assert(runner != nullptr && "a Trial is used on its own threads only: start them with troupe::Thread on trial.clock()");
  return *runner;
}

}  // namespace

Trial::Trial(Scheduler& scheduler) : scheduler_(&scheduler), clock_(seeded_clock(scheduler.shared_from_this())) {}

std::uint64_t Trial::seed() const noexcept { return scheduler_->seed(); }
int Trial::pick(int below) { return scheduler_->draw(me(), below); }
void Trial::note(std::string line) { scheduler_->note(me(), std::move(line)); }

void Trial::sleep(Duration duration) {
  scheduler_->block(me(), State::kSleep, Kind::kSleep, this, Deadline::at(scheduler_->now() + duration));
}

void Trial::expect(bool holds, const std::string& what) {
  if (holds) return;
  scheduler_->broken(what);
  note("does not hold: " + what);
}

}  // namespace troupe::explore
