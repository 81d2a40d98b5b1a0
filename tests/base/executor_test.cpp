#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include <troupe/base/executor.hpp>

namespace troupe {
namespace {

using namespace std::chrono_literals;

/// Counts up; waits for a count with a deadline, so that a lost task fails and does not hang.
class Counter {
 public:
  explicit Counter(std::shared_ptr<Clock> clock) : clock_(std::move(clock)), changed_(*clock_) {}

  void add() {
    std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  bool reaches(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait(lock, clock_->after(10s), [&] { return count_ >= count; });
  }

 private:
  std::shared_ptr<Clock> clock_;
  std::mutex mutex_;
  Condition changed_;
  int count_ = 0;
};

/// Runs a function when it goes, as the last owner of something among a task's captures does.
class AtEnd {
 public:
  explicit AtEnd(std::function<void()> run) : run_(std::move(run)) {}
  ~AtEnd() { run_(); }
  AtEnd(const AtEnd&) = delete;
  AtEnd& operator=(const AtEnd&) = delete;

 private:
  std::function<void()> run_;
};

Executor::Task holding(std::function<void()> at_end) {
  return [end = std::make_shared<AtEnd>(std::move(at_end))] { (void)end; };
}

// SUP-7: what a dropped timer owned goes outside the executor's lock, so that it may use the executor. With the
// lock held this test would wait for itself: ctest's time limit tells.
TEST(ExecutorCaptures, MayPostWhenTheirTimerIsCancelled) {
  const auto clock = system_clock();
  Counter ended(clock);
  Executor executor(clock);
  const auto id = executor.post_at(clock->after(1h), holding([&] { executor.post([&] { ended.add(); }); }));
  EXPECT_TRUE(executor.cancel(id));
  EXPECT_TRUE(ended.reaches(1));
}

// SUP-7
TEST(ExecutorCaptures, MayPostWhenStopDropsTheirTimer) {
  const auto clock = system_clock();
  bool posted = true;
  Executor executor(clock);
  (void)executor.post_at(clock->after(1h), holding([&] { posted = executor.post([] {}); }));
  executor.stop();
  EXPECT_FALSE(posted) << "told that it comes too late";
}

// SUP-7
TEST(ExecutorCaptures, MayPostWhenTheirTaskHasRun) {
  const auto clock = system_clock();
  Counter ended(clock);
  Executor executor(clock);
  executor.post(holding([&] { executor.post([&] { ended.add(); }); }));
  EXPECT_TRUE(ended.reaches(1));
}

TEST(ExecutorStop, RunsWhatWasPostedAndDropsWhatIsDueLater) {
  const auto clock = system_clock();
  std::atomic<int> posted{0}, timers{0}, refused{0};
  Executor executor(clock);
  executor.post([&] {
    for (int i = 0; i < 10; ++i) executor.post([&] { ++posted; });  // accepted: stop() comes after this task began
    ++posted;
  });
  for (int i = 0; i < 10; ++i) (void)executor.post_at(clock->after(1h), [&] { ++timers; });
  for (int i = 0; i < 100; ++i) executor.post([&] { ++posted; });
  Counter first(clock);
  executor.post([&] { first.add(); });
  ASSERT_TRUE(first.reaches(1));
  executor.stop();
  if (!executor.post([&] { ++posted; })) ++refused;
  (void)executor.post_at(clock->after(Duration::zero()), [&] { ++timers; });
  executor.stop();
  EXPECT_EQ(posted, 111);
  EXPECT_EQ(timers, 0);
  EXPECT_EQ(refused, 1);
}

TEST(ExecutorStop, MayBeCalledByManyAtOnce) {
  for (int round = 0; round < 50; ++round) {
    const auto clock = system_clock();
    std::atomic<int> ran{0};
    Executor executor(clock);
    for (int i = 0; i < 20; ++i) executor.post([&] { ++ran; });
    std::vector<Thread> stoppers;
    for (int i = 0; i < 3; ++i) {
      stoppers.emplace_back(*clock, "stopper", [&] {
        executor.stop();
        EXPECT_EQ(ran, 20) << "stop() returns when all has run, to each caller";
      });
    }
    for (auto& stopper : stoppers) stopper.join();
  }
}

// a post that was told "true" runs, however it races with stop(): none lost, none run twice
TEST(ExecutorStop, KeepsItsWordToPostersThatRaceWithIt) {
  for (int round = 0; round < 20; ++round) {
    const auto clock = system_clock();
    std::atomic<int> accepted{0}, ran{0};
    Executor executor(clock);
    std::vector<Thread> posters;
    for (int poster = 0; poster < 4; ++poster) {
      posters.emplace_back(*clock, "poster", [&] {
        for (int i = 0; i < 500; ++i) accepted += executor.post([&] { ++ran; }) ? 1 : 0;
      });
    }
    executor.stop();
    for (auto& poster : posters) poster.join();
    EXPECT_EQ(ran, accepted);
  }
}

TEST(ExecutorTimers, OfOneMomentRunAsTheyWerePosted) {
  const auto clock = system_clock();
  std::vector<int> order;
  Counter ran(clock);
  Executor executor(clock);
  const Deadline moment = clock->after(20ms);
  for (int i = 0; i < 50; ++i) {
    (void)executor.post_at(moment, [&, i] {
      order.push_back(i);
      ran.add();
    });
  }
  ASSERT_TRUE(ran.reaches(50));
  executor.stop();
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(ExecutorTimers, RunNeverBeforeTheirMomentAndNeverWhenItIsNever) {
  const auto clock = system_clock();
  Counter ran(clock);
  TimePoint at{};
  Executor executor(clock);
  const auto never = executor.post_at(Deadline::never(), [] { ADD_FAILURE() << "never came"; });
  const Deadline moment = clock->after(30ms);
  const auto id = executor.post_at(moment, [&] {
    at = clock->now();
    ran.add();
  });
  ASSERT_TRUE(ran.reaches(1));
  EXPECT_GE(at, moment.time());
  EXPECT_FALSE(executor.cancel(id)) << "it has run";
  EXPECT_FALSE(executor.cancel(never)) << "there is nothing to cancel";
  EXPECT_FALSE(executor.cancel(12345));
}

// each timer runs, or its cancel() said true: exactly one of the two, though both race
TEST(ExecutorTimers, EitherRunOrWereCancelled) {
  const auto clock = system_clock();
  constexpr int kTimers = 1000;
  std::vector<std::atomic<int>> ends(kTimers);
  Counter ran(clock);
  Executor executor(clock);
  std::vector<Executor::TimerId> ids;
  const Deadline moment = clock->after(2ms);
  for (std::size_t i = 0; i < kTimers; ++i) {
    ids.push_back(executor.post_at(moment, [&, i] {
      ++ends[i];
      ran.add();
    }));
  }
  int cancelled = 0;
  for (std::size_t i = kTimers; i-- > 0;) {  // from the last: the executor begins with the first
    if (!executor.cancel(ids[i])) continue;
    ++ends[i];
    ++cancelled;
  }
  ASSERT_TRUE(ran.reaches(kTimers - cancelled));
  executor.stop();
  for (const auto& count : ends) EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace troupe
