#include <atomic>
#include <csignal>

#include <gtest/gtest.h>

#include <troupe/base/executor.hpp>

namespace troupe {
namespace {

using namespace std::chrono_literals;

TEST(Clocks, DeadlinesTooFarAreNever) {
  const auto clock = system_clock();
  EXPECT_TRUE(clock->after(Duration::max()).is_never());
  EXPECT_FALSE(clock->after(1h).is_never());
  EXPECT_LT(clock->after(1s), clock->after(2s));
  EXPECT_LT(clock->after(1h), Deadline::never());
}

class Waits : public ::testing::TestWithParam<Duration> {
 protected:
  std::shared_ptr<Clock> clock_ = system_clock(GetParam());
};

TEST_P(Waits, EndAtTheDeadline) {
  std::mutex mutex;
  Condition condition(*clock_);
  std::unique_lock lock(mutex);
  const TimePoint start = clock_->now();
  EXPECT_FALSE(condition.wait(lock, clock_->after(20ms), [] { return false; }));
  EXPECT_GE(clock_->now() - start, 20ms);
}

TEST_P(Waits, SeeEveryWake) {
  std::mutex mutex;
  Condition condition(*clock_);
  int turn = 0;
  const auto play = [&](int mine) {
    for (int i = 0; i < 5000; ++i) {
      std::unique_lock lock(mutex);
      ASSERT_TRUE(condition.wait(lock, clock_->after(10s), [&] { return turn % 2 == mine; }));
      ++turn;
      condition.notify_all();
    }
  };
  Thread other(*clock_, "other", [&] { play(1); });
  play(0);
  other.join();
  EXPECT_EQ(turn, 10000);
}

INSTANTIATE_TEST_SUITE_P(, Waits, ::testing::Values(Duration::zero(), Duration(20us)),
                         [](const auto& info) { return info.param == Duration::zero() ? "Sleeping" : "Yielding"; });

// EMB: signals are the host's
TEST(Threads, BlockAllSignals) {
  const auto clock = system_clock();
  sigset_t mask;
  sigemptyset(&mask);
  Thread thread(*clock, "masked", [&] { pthread_sigmask(SIG_SETMASK, nullptr, &mask); });
  thread.join();
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD}) EXPECT_EQ(sigismember(&mask, signal), 1) << signal;
  sigset_t own;
  pthread_sigmask(SIG_SETMASK, nullptr, &own);
  EXPECT_EQ(sigismember(&own, SIGINT), 0) << "the caller's mask is as before";
}

// SUP-7: never inside post()
TEST(Executors, RunTasksInOrderAndNeverInsidePost) {
  Executor executor(system_clock());
  std::vector<int> order;
  const auto poster = std::this_thread::get_id();
  bool elsewhere = true;
  for (int i = 0; i < 100; ++i) {
    executor.post([&, i] {
      order.push_back(i);
      elsewhere = elsewhere && std::this_thread::get_id() != poster;
    });
  }
  executor.stop();
  ASSERT_EQ(order.size(), 100U);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_TRUE(elsewhere);
  EXPECT_FALSE(executor.post([] {}));
}

TEST(Executors, RunTimersInOrderUnlessCancelled) {
  const auto clock = system_clock();
  Executor executor(clock);
  std::mutex mutex;
  Condition changed(*clock);
  std::vector<int> order;
  const auto add = [&](Duration delay, int value) {
    return executor.post_at(clock->after(delay), [&, value] {
      std::lock_guard lock(mutex);
      order.push_back(value);
      changed.notify_all();
    });
  };
  (void)add(60ms, 3);
  (void)add(20ms, 1);
  const auto cancelled = add(30ms, 99);
  (void)add(40ms, 2);
  EXPECT_TRUE(executor.cancel(cancelled));
  EXPECT_FALSE(executor.cancel(cancelled));
  std::unique_lock lock(mutex);
  EXPECT_TRUE(changed.wait(lock, clock->after(5s), [&] { return order.size() == 3; }));
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(Executors, LoseNoTaskOfManyThreads) {
  const auto clock = system_clock();
  std::atomic<int> ran{0};
  Executor executor(clock);
  std::vector<Thread> posters;
  for (int poster = 0; poster < 4; ++poster) {
    posters.emplace_back(*clock, "poster", [&] {
      for (int i = 0; i < 2000; ++i) executor.post([&] { ++ran; });
    });
  }
  for (auto& poster : posters) poster.join();
  (void)executor.post_at(clock->after(1h), [&] { ran += 1'000'000; });
  executor.stop();
  EXPECT_EQ(ran, 8000) << "what was posted ran, timers were dropped";
}

}  // namespace
}  // namespace troupe
