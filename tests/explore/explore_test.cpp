// The explorer itself: it finds what was planted, replays it, and says so of what it cannot see.
#include "scenarios.hpp"

#include <atomic>
#include <cstdlib>
#include <thread>

#include <troupe/base/executor.hpp>

#if defined(__SANITIZE_THREAD__)
// the threads of a run that ends in a deadlock stay parked: nothing can unwind them
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options() { return "report_thread_leaks=0"; }
#endif

namespace troupe::explore::test {
namespace {

using namespace std::chrono_literals;

/// A box for one value, with the faults that such code has had.
struct Box {
  enum class Fault { kNone, kForgetsToNotify, kFillsWithoutLock, kWakesBeforeItFills };
  Box(Clock& clock, Fault f) : filled(clock), fault(f) {}
  void put(int v) {
    std::unique_lock lock(mutex, std::defer_lock);
    if (fault == Fault::kWakesBeforeItFills) filled.notify_all();
    if (fault != Fault::kFillsWithoutLock) lock.lock();
    value = v;
    if (fault == Fault::kNone || fault == Fault::kFillsWithoutLock) filled.notify_all();
  }
  int take() {
    std::unique_lock lock(mutex);
    (void)filled.wait(lock, Deadline::never(), [&] { return value != 0; });
    return value;
  }
  std::mutex mutex;
  Condition filled;
  std::atomic<int> value = 0;
  Fault fault;
};

void pass_one_value(Trial& trial, Box::Fault fault) {
  Box box(*trial.clock(), fault);
  Thread putter(*trial.clock(), "putter", [&] { box.put(7); });
  trial.expect(box.take() == 7, "the value that was put");
  putter.join();
}

/// A toy protocol: a call that a worker answers and a deadline may fail. Planted: both look whether it is complete
/// before they complete it, but not under one lock.
struct ToyCall {
  explicit ToyCall(Clock& clock) : changed(clock) {}
  void complete(bool looks_under_lock) {
    std::unique_lock lock(mutex);
    if (completions > 0) return;
    if (!looks_under_lock) {
      lock.unlock();
      lock.lock();
    }
    ++completions;
    changed.notify_all();
  }
  std::mutex mutex;
  Condition changed;
  int completions = 0;
};

void answer_or_expire(Trial& trial, bool sound) {
  ToyCall call(*trial.clock());
  Executor timers(trial.clock());
  timers.post_at(trial.clock()->after(5ms), [&] { call.complete(sound); });
  Thread worker(*trial.clock(), "worker", [&] {
    trial.sleep(std::chrono::milliseconds(trial.pick(10)));
    call.complete(sound);
  });
  worker.join();
  {
    std::unique_lock lock(call.mutex);
    (void)call.changed.wait(lock, Deadline::never(), [&] { return call.completions > 0; });
  }
  trial.sleep(20ms);
  timers.stop();
  trial.expect(call.completions == 1, "SUP-1: the call completes exactly once");
}

void two_locks(Trial& trial, bool one_order) {
  std::mutex first, second;
  Thread other(*trial.clock(), "other", [&] {
    std::lock_guard a(one_order ? first : second);
    std::lock_guard b(one_order ? second : first);
  });
  {
    std::lock_guard a(first);
    std::lock_guard b(second);
  }
  other.join();
}

/// In how many of 100 seeds it is found.
int found(const std::function<void(Trial&)>& scenario) {
  int count = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) count += explore({.first_seed = seed, .seeds = 1}, scenario).failure ? 1 : 0;
  return count;
}

// EXP-1: classic faults, each found in a good part of the seeds; their sound twins never fail
TEST(Explore, FindsWhatWasPlanted) {
  const auto box = [](Box::Fault fault) { return [fault](Trial& trial) { pass_one_value(trial, fault); }; };
  const std::pair<const char*, std::function<void(Trial&)>> planted[] = {
      {"a notify that was forgotten", box(Box::Fault::kForgetsToNotify)},
      {"a change without the lock: lost wake-up", box(Box::Fault::kFillsWithoutLock)},
      {"a wake before the change", box(Box::Fault::kWakesBeforeItFills)},
      {"two locks in two orders", [](Trial& trial) { two_locks(trial, false); }},
      {"a call that completes twice", [](Trial& trial) { answer_or_expire(trial, false); }},
  };
  for (const auto& [name, scenario] : planted) {
    const int times = found(scenario);
    std::cout << name << ": in " << times << " of 100 seeds\n";
    EXPECT_GT(times, 0) << name;
  }
  EXPECT_EQ(found(box(Box::Fault::kNone)), 0);
  EXPECT_EQ(found([](Trial& trial) { two_locks(trial, true); }), 0);
  EXPECT_EQ(found([](Trial& trial) { answer_or_expire(trial, true); }), 0);
}

// EXP-1: the first failing seed is told, with each thread and where it waits, and replays
TEST(Explore, AFailureNamesSeedThreadsAndReplays) {
  const auto done = explore({.seeds = 200}, [](Trial& trial) { pass_one_value(trial, Box::Fault::kFillsWithoutLock); });
  ASSERT_TRUE(done.failure);
  const std::string told = done.failure->describe();
  EXPECT_TRUE(done.failure->replays);
  EXPECT_EQ(done.failure->seed, static_cast<std::uint64_t>(done.runs));
  EXPECT_NE(told.find("deadlock"), std::string::npos) << told;
  EXPECT_NE(told.find("main waits at tests/explore/explore_test.cpp:"), std::string::npos) << told;
  EXPECT_NE(told.find("TROUPE_SEED="), std::string::npos) << told;
  const auto locks = explore({.seeds = 200}, [](Trial& trial) { two_locks(trial, false); });
  ASSERT_TRUE(locks.failure);
  EXPECT_NE(locks.failure->describe().find("main waits for a lock that other holds"), std::string::npos) << locks.failure->describe();
}

// EXP-1: equal seeds, equal runs; other seeds, other runs
TEST(Explore, TheSameSeedIsTheSameRun) {
  const auto scenario = [](Trial& trial) { answer_or_expire(trial, true); };
  const auto once = explore({.seeds = 100}, scenario), again = explore({.seeds = 100}, scenario);
  EXPECT_EQ(once.hash, again.hash);
  EXPECT_EQ(once.steps, again.steps);
  EXPECT_GT(once.distinct, 40);
  EXPECT_NE(explore({.first_seed = 5000, .seeds = 100}, scenario).hash, once.hash);
}

// EXP-2: time is virtual; deadlines pass exactly, in order, and only when nothing can run
TEST(Explore, TimePassesOnlyWhenNothingCanRun) {
  const auto start = std::chrono::steady_clock::now();
  expect_sound({.seeds = 20}, [](Trial& trial) {
    const TimePoint begin = trial.clock()->now();
    std::mutex mutex;
    Condition never(*trial.clock());
    Thread sleeper(*trial.clock(), "sleeper", [&] { std::this_thread::sleep_for(2h); });
    Thread busy(*trial.clock(), "busy", [&] {
      for (int i = 0; i < 100; ++i) std::this_thread::yield();
    });
    std::unique_lock lock(mutex);
    trial.expect(!never.wait(lock, trial.clock()->after(1h), [] { return false; }), "nobody wakes it");
    const Duration waited = trial.clock()->now() - begin;
    trial.expect(waited >= 1h && waited < 1h + 1ms, "EXP-2: the wait ends at its deadline");
    lock.unlock();
    busy.join();
    sleeper.join();
    trial.expect(trial.clock()->now() - begin >= 2h, "sleeps pass in virtual time");
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
}

// EXP-2: on request a deadline passes before threads that could run, as on a machine that is very slow
TEST(Explore, DeadlinesMayPassAtAnyTime) {
  const auto scenario = [](Trial& trial) {
    Box box(*trial.clock(), Box::Fault::kNone);
    Thread putter(*trial.clock(), "putter", [&] { box.put(7); });
    std::unique_lock lock(box.mutex);
    const bool came = box.filled.wait(lock, trial.clock()->after(1h), [&] { return box.value != 0; });
    lock.unlock();
    putter.join();
    trial.expect(came, "the value came in time");
  };
  EXPECT_FALSE(explore({.seeds = 300}, scenario).failure);
  EXPECT_TRUE(explore({.seeds = 300, .deadlines = Passing::kAnyTime}, scenario).failure);
}

// EXP-3: what the scheduler can't see is told, never a hang
TEST(Explore, SaysWhenAThreadBlocksOutsideTheScheduler) {
  static std::atomic<bool> gate{false};
  const auto done = explore({.seeds = 1, .patience = 500ms}, [](Trial&) {
    while (!gate) {}
  });
  ASSERT_TRUE(done.failure);
  EXPECT_NE(done.failure->what.find("main has not come back to the scheduler"), std::string::npos) << done.failure->what;
  gate = true;
}

TEST(Explore, SaysWhenAStrangeThreadUsesTheClock) {
  const auto done = explore({.seeds = 1}, [](Trial& trial) {
    Box box(*trial.clock(), Box::Fault::kNone);
    std::thread stranger([&] { box.put(1); });
    stranger.join();
  });
  ASSERT_TRUE(done.failure);
  EXPECT_NE(done.failure->what.find("a thread that is none of the run's"), std::string::npos) << done.failure->what;
}

TEST(Explore, EndsARunThatGoesRoundInCircles) {
  const auto done = explore({.seeds = 1, .max_steps = 1000}, [](Trial& trial) {
    while (trial.clock()->now() < TimePoint::max()) {}
  });
  ASSERT_TRUE(done.failure);
  EXPECT_NE(done.failure->what.find("no end after 1000 steps"), std::string::npos) << done.failure->what;
}

TEST(Explore, TellsExceptionsAndThreadsThatWereLeft) {
  const auto threw = explore({.seeds = 1}, [](Trial&) { throw std::runtime_error("out of ideas"); });
  ASSERT_TRUE(threw.failure);
  EXPECT_NE(threw.failure->what.find("out of ideas"), std::string::npos);
  const auto left = explore({.seeds = 1}, [](Trial& trial) {
    auto box = std::make_shared<Box>(*trial.clock(), Box::Fault::kNone);
    Thread waiter(*trial.clock(), "waiter", [box, clock = trial.clock()] { (void)box->take(); });
    waiter.leave();
  });
  ASSERT_TRUE(left.failure);
  ASSERT_EQ(left.failure->threads.size(), 1U);
  EXPECT_EQ(left.failure->threads[0].find("waiter waits at "), 0U) << left.failure->threads[0];
}

int slow_static(Trial& trial) {
  static const int value = [&] {
    trial.sleep(1ms);
    return 3;
  }();
  return value;
}

// a static's initialisation may wait; whoever else needs it must not block where nobody sees it
TEST(Explore, StaticsAreInitialisedOnce) {
  expect_sound({.seeds = 1}, [](Trial& trial) { trial.expect(slow_static(trial) == 3, "the value"); });
}

TEST(Explore, OptionsComeFromTheEnvironment) {
  ::setenv("TROUPE_SEEDS", "7", 1);
  EXPECT_EQ(ExploreOptions::from_env({}).value().seeds, 7);
  ::setenv("TROUPE_SEED", "41", 1);
  const auto one = ExploreOptions::from_env({.seeds = 500}).value();
  EXPECT_EQ(one.first_seed, 41U);
  EXPECT_EQ(one.seeds, 1);
  EXPECT_TRUE(one.full_trace);
  ::setenv("TROUPE_SEED", "x1", 1);
  EXPECT_EQ(ExploreOptions::from_env({}).error().code, Errc::kInvalidArgument);
  ::unsetenv("TROUPE_SEED");
  ::unsetenv("TROUPE_SEEDS");
}

}  // namespace
}  // namespace troupe::explore::test
