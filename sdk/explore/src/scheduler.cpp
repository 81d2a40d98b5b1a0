#include "scheduler.hpp"

#include <algorithm>
#include <utility>

#include <pthread.h>
#include <sched.h>

#include <troupe/base/text.hpp>

namespace troupe::explore {
namespace {

constexpr std::int64_t kTick = 100;  // ns of virtual time a step takes: a loop that waits for time to pass ends
constexpr int kIdleLooks = 200;

thread_local Runner* current = nullptr;

/// Keeps the calling thread, and those it starts, on the processor it is on: a baton passed on one processor
/// costs about 2 us, to another one 30.
void stay_on_this_cpu() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(std::max(0, sched_getcpu())), &one);
  (void)pthread_setaffinity_np(pthread_self(), sizeof(one), &one);  // refused: slower, nothing else
}

}  // namespace

Runner* current_runner() noexcept { return current; }

Scheduler::Scheduler(std::uint64_t seed, const ExploreOptions& options)
    : seed_(seed), options_(options), strategy_(seed), draws_(seed * 0x2545f4914f6cdd1dU + 1), time_(std::int64_t{1} << 40) {
  constexpr std::uint64_t kJumpOdds[] = {0, 20, 100, 500};  // a quarter of the runs has none
  if (options.deadlines == Passing::kAnyTime) jump_odds_ = kJumpOdds[Draws(~seed).below(4)];
}

Runner& Scheduler::add(const std::string& name) {
  auto runner = std::make_unique<Runner>();
  runner->index = static_cast<int>(runners_.size());
  runner->name = name;
  runner->scheduler = this;
  runner->priority = strategy_.priority();
  runners_.push_back(std::move(runner));
  return *runners_.back();
}

std::thread Scheduler::start(Clock& threads, const std::string& name, std::function<void()> body) {
  Runner& runner = add(name);
  // the thread shares ownership: one that stays parked after a failure still stands on something
  std::thread thread = threads.start(name, [self = shared_from_this(), &runner, body = std::move(body)]() mutable {
    runner.gate.wait();
    if (self->given_up_) self->park(runner);
    current = &runner;
    body();
    body = nullptr;  // what it holds goes while the baton is here
    self->end(runner);
  });
  runner.id = thread.get_id();
  if (current != nullptr) point(*current, Kind::kStart);
  return thread;
}

void Scheduler::run(std::function<void()> body) {
  const auto threads = system_clock();
  first_ = start(*threads, "main", [body = std::move(body)] {
    stay_on_this_cpu();
    body();
  });
  runners_.front()->gate.open();
  watch();
  if (failure_) {
    first_.detach();  // it may be parked; it owns what it stands on
  } else {
    first_.join();
  }
  over_.store(true, std::memory_order_release);
}

/// The thread that has ended passes the baton on; the last one ends the run.
void Scheduler::end(Runner& me) {
  me.state = State::kDone;
  current = nullptr;
  wake(&me, State::kJoin);
  take_step(me);
  if (given_up_) return;
  if (std::ranges::all_of(runners_, [](const auto& runner) { return runner->state == State::kDone; })) {
    if (broken_.empty() && intruded_) broken_ = "a thread that is none of the run's used its clock: start threads with troupe::Thread on trial.clock()";
    if (!broken_.empty()) conclude(broken_);
    return ended_.open();
  }
  Runner* const next = choose(nullptr, false);
  if (next == nullptr) return give_up(nullptr, "deadlock: the threads below wait, no deadline is pending");
  record({steps(), time_, me.index, next->index, Kind::kEnd});
  running_.store(next->index, std::memory_order_relaxed);
  next->gate.open();
}

void Scheduler::take_step(Runner& me) {
  me.idle_looks = 0;
  const std::int64_t step = steps_.fetch_add(1, std::memory_order_relaxed);
  time_.fetch_add(kTick, std::memory_order_relaxed);
  if (given_up_.load(std::memory_order_relaxed)) park(me);
  if (step > options_.max_steps) {
    give_up(current, text("no end after ", options_.max_steps, " steps: it goes round in circles, or ExploreOptions::max_steps is too low"));
  }
}

void Scheduler::point(Runner& me, Kind kind) {
  take_step(me);
  if (me.initialising == 0) hand_over(me, choose(&me, false), kind);
}

void Scheduler::yield(Runner& me) {
  take_step(me);
  strategy_.yield(me);
  hand_over(me, choose(&me, true), Kind::kYield);
}

void Scheduler::look_at_time(Runner& me) {
  time_.fetch_add(1, std::memory_order_relaxed);
  if (++me.idle_looks > kIdleLooks && me.initialising == 0) yield(me);
}

void Scheduler::block(Runner& me, State state, Kind kind, const void* on, Deadline until, CallSite at) {
  me.state = state;
  me.on = on;
  me.until = until;
  if (*at.file != '\0') me.at = at;
  take_step(me);
  Runner* const next = choose(nullptr, false);
  if (next == nullptr) return give_up(&me, "deadlock: every thread waits, no deadline is pending");
  hand_over(me, next, kind);
}

void Scheduler::wake(const void* on, State state) {
  for (const auto& runner : runners_) {
    if (runner->state == state && runner->on == on) runner->state = State::kRunnable;
  }
}

void Scheduler::unlocked(const void* mutex) {
  owners_.erase(mutex);
  wake(mutex, State::kMutex);
}

void Scheduler::collect_runnable() {
  runnable_.clear();
  const TimePoint time = now();
  for (const auto& runner : runners_) {
    const bool waits = runner->state != State::kRunnable && runner->state != State::kDone;
    if (waits && runner->until.time() <= time) runner->state = State::kRunnable;
    if (runner->state == State::kRunnable) runnable_.push_back(runner.get());
  }
}

/// Time goes to the earliest deadline; false when there is none.
bool Scheduler::jump() {
  Deadline earliest = Deadline::never();
  for (const auto& runner : runners_) {
    if (runner->state != State::kRunnable && runner->state != State::kDone) earliest = std::min(earliest, runner->until);
  }
  if (earliest.is_never()) return false;
  time_.store(std::max(time_.load(), earliest.time().time_since_epoch().count()));
  record({steps(), time_, running_, running_, Kind::kTime});
  return true;
}

Runner* Scheduler::choose(Runner* before, bool others_first) {
  if (jump_odds_ != 0 && draws_.one_in(jump_odds_)) (void)jump();
  collect_runnable();
  if (runnable_.empty()) {
    if (!jump()) return nullptr;
    collect_runnable();
  }
  if (others_first && runnable_.size() > 1) std::erase(runnable_, before);
  return strategy_.pick(runnable_, others_first ? nullptr : before);
}

void Scheduler::hand_over(Runner& me, Runner* next, Kind kind) {
  if (next == &me) return;
  ++switches_;
  record({steps(), time_, me.index, next->index, kind});
  running_.store(next->index, std::memory_order_relaxed);
  next->gate.open();
  me.gate.wait();
  if (given_up_.load(std::memory_order_acquire)) park(me);
}

void Scheduler::record(Event event) {
  for (const auto part : {event.step, event.time, std::int64_t{event.from}, std::int64_t{event.to}, static_cast<std::int64_t>(event.kind)}) {
    hash_ = (hash_ ^ static_cast<std::uint64_t>(part)) * 0x100000001b3U;
  }
  events_.push_back(event);
}

int Scheduler::draw(Runner& me, int below) {
  const int drawn = static_cast<int>(draws_.below(static_cast<std::uint64_t>(std::max(1, below))));
  record({steps(), time_, me.index, drawn, Kind::kDraw});
  return drawn;
}

void Scheduler::note(Runner& me, std::string line) {
  record({steps(), time_, me.index, static_cast<int>(notes_.size()), Kind::kNote});
  notes_.push_back(std::move(line));
}

void Scheduler::broken(const std::string& what) {
  if (broken_.empty()) broken_ = what;
}

void Scheduler::join(Runner& me, std::thread& thread) {
  // from the last one on: the system gives the ids of ended threads to new ones
  const auto found = std::find_if(runners_.rbegin(), runners_.rend(), [&](const auto& runner) { return runner->id == thread.get_id(); });
  if (found != runners_.rend()) {
    Runner* const other = found->get();
    point(me, Kind::kJoin);
    while (other->state != State::kDone) block(me, State::kJoin, Kind::kJoin, other, Deadline::never());
  }
  thread.join();
}

/// A failure after which the run can't go on: whoever waits stays where it is.
void Scheduler::give_up(Runner* me, const std::string& what) {
  conclude(broken_.empty() ? what : broken_ + "; then " + what);
  given_up_.store(true, std::memory_order_release);
  ended_.open();
  if (me != nullptr) park(*me);
}

void Scheduler::park(Runner& me) {
  for (;;) me.gate.wait();
}

/// Waits for the end of the run, in real time; a thread that stays away too long is what failed.
void Scheduler::watch() {
  std::int64_t seen = -1;
  auto since = std::chrono::steady_clock::now();
  while (!ended_.wait_for(std::chrono::milliseconds(200))) {
    const auto now = std::chrono::steady_clock::now();
    if (const std::int64_t done = steps(); done != seen) {
      seen = done;
      since = now;
    } else if (now - since > options_.patience) {
      given_up_.store(true, std::memory_order_release);
      const Runner& stuck = *runners_[static_cast<std::size_t>(running_)];
      return conclude(text(stuck.name, " has not come back to the scheduler: it blocks or spins outside troupe's waits, locks and threads"));
    }
  }
}

}  // namespace troupe::explore
