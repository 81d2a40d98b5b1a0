// Deadlines in queues, pools that ask each other, ends of handles and runtimes, the executor's timers.
#include "scenarios.hpp"

#include <algorithm>

#include <troupe/actors/runtime.hpp>

namespace troupe::explore::test {
namespace {

using namespace std::chrono_literals;

RuntimeOptions quiet(Trial& trial) {
  RuntimeOptions options;
  options.clock = trial.clock();
  options.log = [](LogLevel, std::string_view) {};
  return options;
}

class Slow {
 public:
  explicit Slow(Trial* trial) : trial_(trial) {}
  int work(int ms) {
    trial_->sleep(std::chrono::milliseconds(ms));
    return ms;
  }

 private:
  Trial* trial_;
};

void late_calls(Trial& trial) {
  constexpr Duration kQueue = 100ms, kVerb = 40ms;
  const auto runtime = or_throw(Runtime::create(quiet(trial)));
  const auto pool = or_throw(runtime.pool<Slow>({.name = "slow", .mesh = {{"dp", 2}}, .queue_deadline = kQueue, .limit_messages = 2 + trial.pick(4)}, &trial));
  const auto caller = [&] {
    for (int turn = 0; turn < 5; ++turn) {
      const TimePoint start = trial.clock()->now();
      const int ms = 1 + trial.pick(39);
      const bool on_all = trial.one_in(3);
      const auto answer = [&]() -> Result<void> {
        if (on_all) {
          auto all = pool.call<&Slow::work>(ms).get(1h);
          return all ? Result<void>{} : fail(all.error());
        }
        auto one = trial.one_in(2) ? pool.one<&Slow::work>(ms).get(1h) : pool.at<&Slow::work>(trial.pick(2), ms).get(1h);
        return one ? Result<void>{} : fail(one.error());
      }();
      const Duration took = trial.clock()->now() - start;
      trial.expect(answer || answer.error().code == Errc::kTimeout, "only a deadline can fail it");
      // begun on one rank it may still wait for the other, behind what is queued there
      if (!on_all || !answer) trial.expect(took <= kQueue + kVerb + 1ms, text("SUP-2: a call ended ", took.count() / 1000, " us after it was made; the queue deadline is 100 ms, a verb takes up to 40"));
      if (!answer) trial.expect(took >= kQueue, "SUP-2: too early");
    }
  };
  std::vector<Thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(*trial.clock(), "caller." + std::to_string(i), caller);
  for (auto& thread : threads) thread.join();
  expect_ok(trial, runtime.shutdown(1h), "SUP-8: shutdown ends");
}

// SUP-2, POOL-3: a call that was not begun within the queue deadline ends then, also one that first waited for room
TEST(ExplorePools, QueueDeadlinesHoldInVirtualTime) { expect_sound({.seeds = 200}, late_calls); }

/// Asks the other pool while it runs a verb.
class Asker {
 public:
  void know(const Pool<Asker>& other) { other_.emplace(other); }
  int ask(int depth) {
    if (depth == 0) return 0;
    return or_throw(other_->at<&Asker::ask>(0, depth - 1).get(1h)) + 1;
  }
  int add(int a, int b) const { return a + b; }
  int all(int value) { return value; }

 private:
  std::optional<Pool<Asker>> other_;
};

void pools_that_ask(Trial& trial) {
  const auto runtime = or_throw(Runtime::create(quiet(trial)));
  const auto a = or_throw(runtime.pool<Asker>({.name = "a", .mesh = {{"dp", 1 + trial.pick(2)}}}));
  const auto b = or_throw(runtime.pool<Asker>({.name = "b", .mesh = {{"dp", 1 + trial.pick(2)}}}));
  expect_ok(trial, a.call<&Asker::know>(b).get(1h), "know");
  expect_ok(trial, b.call<&Asker::know>(a).get(1h), "know");
  const TimePoint start = trial.clock()->now();
  const bool verbs_wait = trial.one_in(2);  // they can close a cycle with Refs, too
  const auto caller = [&](const Pool<Asker>& mine, const Pool<Asker>& other) {
    for (int turn = 0; turn < 3; ++turn) {
      if (verbs_wait && trial.one_in(2)) {
        const int depth = trial.pick(4);
        const auto answer = mine.at<&Asker::ask>(0, depth).get(2h);
        if (answer) trial.expect(*answer == depth, "a wrong answer");
        if (!answer) trial.expect(answer.error().code == Errc::kDeadlock, "POOL-6: " + answer.error().describe());
      } else {  // a diamond of Refs over both pools
        auto left = mine.call<&Asker::all>(turn);
        auto right = other.one<&Asker::add>(left.refs().back(), 10);
        const auto sum = mine.one<&Asker::add>(left.refs().front(), right.ref()).get(2h);
        if (!verbs_wait) expect_ok(trial, sum, "POOL-6: Refs of older tickets resolve");
        if (!sum) trial.expect(sum.error().code == Errc::kDeadlock, "POOL-6: " + sum.error().describe());
        if (sum) trial.expect(*sum == 2 * turn + 10, "a wrong sum");
      }
    }
  };
  Thread first(*trial.clock(), "caller.a", [&] { caller(a, b); });
  Thread second(*trial.clock(), "caller.b", [&] { caller(b, a); });
  first.join();
  second.join();
  trial.expect(trial.clock()->now() - start < 1min, "POOL-6: a cycle of waits ends at once, not at a deadline");
  expect_ok(trial, runtime.shutdown(1h), "SUP-8: shutdown ends");
}

// POOL-6, F8
TEST(ExplorePools, ThatAskEachOtherNeverHang) { expect_sound({.seeds = 200}, pools_that_ask); }

/// Handles of pools and runtimes go in callbacks, verbs and threads, in any order.
void handles_that_go(Trial& trial) {
  Tally tally(trial);
  auto life = std::make_shared<int>(0);
  {
    auto runtime = std::make_shared<std::optional<Runtime>>(or_throw(Runtime::create(quiet(trial))));
    std::vector<Thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back(*trial.clock(), "user." + std::to_string(i), [&, i] {
        for (int turn = 0; turn < 3; ++turn) {
          auto made = (*runtime)->pool<Slow>({.name = "pool." + std::to_string(trial.one_in(3) ? 0 : i), .mesh = {{"dp", 1 + trial.pick(2)}}}, &trial);
          if (!made) {
            trial.expect(made.error().code == Errc::kInvalidArgument || made.error().code == Errc::kClosed, made.error().describe());
            continue;
          }
          auto pool = std::make_shared<std::optional<Pool<Slow>>>(std::move(*made));
          tally.began("a call");
          (*pool)->one<&Slow::work>(trial.pick(5)).then([&tally, pool, life](const Result<void>&) {
            tally.ended("a call");
            pool->reset();
          });
          if (trial.one_in(4)) (void)(*runtime)->status();
          if (trial.one_in(8)) expect_ok(trial, (*runtime)->shutdown(1h), "shutdown");
        }
      });
    }
    for (auto& thread : threads) thread.join();
    expect_ok(trial, (*runtime)->shutdown(1h), "SUP-8: shutdown ends");
  }
  tally.expect_balanced();
  trial.expect(life.use_count() == 1, "a callback outlived its runtime");
}

// SUP-1, SUP-7, SUP-8
TEST(ExplorePools, HandlesMayGoAnywhere) { expect_sound({.seeds = 200}, handles_that_go); }

void timers(Trial& trial) {
  auto executor = std::make_unique<Executor>(trial.clock());
  std::vector<int> ran, posted;
  std::mutex mutex;
  Tally tally(trial);
  const auto user = [&](int number) {
    for (int i = 0; i < 4; ++i) {
      if (trial.one_in(2)) {
        const Deadline when = trial.clock()->after(std::chrono::milliseconds(trial.pick(20)));
        const bool must_run = trial.one_in(2);
        auto fired = std::make_shared<bool>(false);
        const auto id = executor->post_at(when, [&, when, fired] {
          trial.expect(trial.clock()->now() >= when.time(), "a timer ran early");
          trial.expect(!std::exchange(*fired, true), "a timer ran twice");
        });
        if (must_run) continue;
        trial.sleep(std::chrono::milliseconds(trial.pick(20)));
        const bool before = *fired;
        if (executor->cancel(id)) trial.expect(!before, "a timer that ran was cancelled");
      } else {
        std::lock_guard lock(mutex);
        const int task = 10 * number + i;
        if (executor->post([&ran, task] { ran.push_back(task); })) posted.push_back(task);
      }
    }
  };
  std::vector<Thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(*trial.clock(), "user." + std::to_string(i), [&user, i] { user(i); });
  Thread stopper(*trial.clock(), "stopper", [&] {
    trial.sleep(std::chrono::milliseconds(trial.pick(40)));
    executor->stop();
  });
  for (auto& thread : threads) thread.join();
  executor->stop();
  stopper.join();
  executor = nullptr;
  trial.expect(ran == posted, "every task that was taken ran once, in the order it was posted in");
}

// SUP-1, SUP-8
TEST(ExplorePools, TheExecutorRunsWhatItTookOnce) { expect_sound({.seeds = 200}, timers); }

}  // namespace
}  // namespace troupe::explore::test
