#include <atomic>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>

#include <troupe/actors/runtime.hpp>

namespace troupe {
namespace {

using namespace std::chrono_literals;

class Recorder {
 public:
  explicit Recorder(Rank& rank) : rank_(rank) {}
  int record(int value) {
    if (inside_.exchange(true)) throw std::runtime_error("two verbs at once");
    seen_.push_back(value);
    inside_ = false;
    return rank_.index();
  }
  std::vector<int> seen() const { return seen_; }
  int add(int a, int b) { return a + b; }
  std::vector<float> large(std::int64_t count) { return std::vector<float>(static_cast<std::size_t>(count), 1.0F); }
  int world() { return (or_throw(rank_.world().barrier()), rank_.world_size()); }
  std::uint64_t thread() { return std::hash<std::thread::id>{}(std::this_thread::get_id()); }

 private:
  Rank& rank_;
  std::vector<int> seen_;
  std::atomic<bool> inside_{false};
};

class Calls : public ::testing::Test {
 protected:
  Pool<Recorder> make(int ranks, std::string name = "recorders") {
    return or_throw(runtime.pool<Recorder>({.name = std::move(name), .mesh = {{"dp", ranks}}}));
  }
  Runtime runtime = or_throw(Runtime::create());
};

// POOL-1: however many callers, every rank sees all-rank calls in one order
TEST_F(Calls, FromManyCallersRunInOneOrderOnEveryRank) {
  const auto pool = make(3);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 8; ++caller) {
    callers.emplace_back([&, caller] {
      for (int i = 0; i < 100; ++i) (void)pool.call<&Recorder::record>(caller * 1000 + i).get(10s).value();
    });
  }
  for (auto& caller : callers) caller.join();
  const auto seen = pool.call<&Recorder::seen>().get(10s).value();
  ASSERT_EQ(seen[0].size(), 800U);
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[0], seen[2]);
}

TEST_F(Calls, GiveEachRankItsOwnArgument) {
  const auto pool = make(4);
  EXPECT_EQ(pool.call<&Recorder::add>(per_rank<int>({1, 2, 3, 4}), 10).get(5s).value(), (std::vector<int>{11, 12, 13, 14}));
  const auto wrong = pool.call<&Recorder::add>(per_rank<int>({1, 2}), 10).get(5s);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Errc::kInvalidArgument);
  EXPECT_NE(wrong.error().message.find("2 values, the pool has 4 ranks"), std::string::npos);
}

// POOL-2: one() and at() run on one rank, and have no group
TEST_F(Calls, OnOneRankHaveNoGroup) {
  const auto pool = make(2);
  EXPECT_EQ(pool.call<&Recorder::world>().get(5s).value(), (std::vector<int>{2, 2}));
  for (const auto& result : {pool.one<&Recorder::world>().get(5s), pool.at<&Recorder::world>(1).get(5s)}) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Errc::kInvalidArgument);
  }
  EXPECT_EQ(pool.call<&Recorder::world>().get(5s).value(), (std::vector<int>{2, 2})) << "and disturb nothing";
  EXPECT_EQ(pool.at<&Recorder::world>(7).get(5s).error().code, Errc::kInvalidArgument);
}

// POOL-2: a rank's verbs run on one thread of its own
TEST_F(Calls, OfOneRankRunOnOneThread) {
  const auto pool = make(2);
  const auto first = pool.call<&Recorder::thread>().get(5s).value();
  EXPECT_NE(first[0], first[1]);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(pool.call<&Recorder::thread>().get(5s).value(), first);
}

// POOL-6, POOL-8: values stay where they are made; a Ref may name one that is not made yet
TEST_F(Calls, TakeRefsToValuesThatDoNotExistYet) {
  const auto first = make(1, "first");
  const auto second = make(2, "second");
  Ref<int> value = first.at<&Recorder::add>(0, 1, 2).ref();
  for (int i = 0; i < 20; ++i) value = second.at<&Recorder::add>(i % 2, value, 1).ref();
  EXPECT_EQ(value.get(5s).value().get(), 23);
  EXPECT_EQ(first.one<&Recorder::add>(runtime.put(5), 1).get(5s).value(), 6);
  EXPECT_EQ(second.call<&Recorder::add>(Ref<int>(), 1).get(5s).error().code, Errc::kInvalidArgument);
}

TEST_F(Calls, GatherArgumentsFromManyRefs) {
  const auto pool = make(4);
  Gather<int> sum{pool.call<&Recorder::record>(0).refs(), [](std::span<const Ref<int>> parts, int rank) {
                    return std::accumulate(parts.begin(), parts.end(), 100 * rank, [](int a, const Ref<int>& part) { return a + part.value(); });
                  }};
  EXPECT_EQ(pool.call<&Recorder::add>(std::move(sum), 0).get(5s).value(), (std::vector<int>{6, 106, 206, 306}));
}

TEST_F(Calls, RefsStayWholeWhenTheValueIsTaken) {
  const auto pool = make(1);
  auto pending = pool.at<&Recorder::large>(0, std::int64_t{1000});
  const auto ref = pending.ref();
  EXPECT_EQ(pending.get(5s).value().size(), 1000U);
  EXPECT_EQ(ref.get(5s).value().get().size(), 1000U);
}

// POOL-6: two callers with Refs across two pools never deadlock
TEST_F(Calls, WithRefsAcrossPoolsFromTwoCallersDoNotDeadlock) {
  const auto a = make(2, "a");
  const auto b = make(2, "b");
  const auto run = [](const Pool<Recorder>& from, const Pool<Recorder>& to) {
    for (int i = 0; i < 500; ++i) {
      auto refs = from.call<&Recorder::add>(i, 1).refs();
      ASSERT_TRUE(to.call<&Recorder::add>(per_rank(std::move(refs)), 1).get(10s));
    }
  };
  std::thread other([&] { run(b, a); });
  run(a, b);
  other.join();
}

// S1: a large result is a value like any other
TEST_F(Calls, ReturnLargeVectors) {
  const auto pool = make(1);
  EXPECT_EQ(pool.at<&Recorder::large>(0, std::int64_t{50'000'000}).get(60s).value().size(), 50'000'000U);
}

// P2: each call has its own results, whatever was submitted before
TEST_F(Calls, KeepTheirOwnResults) {
  const auto pool = make(3);
  std::vector<Pending<int>> earlier;
  for (int i = 0; i < 6; ++i) earlier.push_back(pool.one<&Recorder::add>(i, 0));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(pool.one<&Recorder::add>(100, i).get(5s).value(), 100 + i);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(earlier[static_cast<std::size_t>(i)].get(5s).value(), i);
}

// S2: a pool handle is an ordinary value, also as an argument
class Caller {
 public:
  int ask(const Pool<Recorder>& pool) { return pool.one<&Recorder::add>(20, 22).get(5s).value(); }
  void hold(Pool<Recorder> pool) { held_.emplace(std::move(pool)); }

 private:
  std::optional<Pool<Recorder>> held_;
};
TEST_F(Calls, TakePoolHandlesAsArguments) {
  const auto callers = or_throw(runtime.pool<Caller>({.name = "callers"}));
  EXPECT_EQ(callers.one<&Caller::ask>(make(2)).get(10s).value(), 42);
  ASSERT_TRUE(callers.one<&Caller::hold>(make(1, "held")).get(10s));
}

// SUP-1, P1: a timeout is typed; the call goes on and completes once
class Slow {
 public:
  int work(int ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    return ms;
  }
};
TEST_F(Calls, ThatAreLateTimeOutForTheCallerOnly) {
  const auto pool = or_throw(runtime.pool<Slow>({.name = "slow"}));
  auto pending = pool.one<&Slow::work>(200);
  EXPECT_EQ(pending.get(10ms).error().code, Errc::kTimeout);
  EXPECT_EQ(pending.get(10s).value(), 200);
  EXPECT_EQ(runtime.status().pools.front().ranks.size(), 1U);
}

// SUP-2: a running verb has no deadline but shows since when it runs; one that waits in a queue has one
TEST_F(Calls, ThatWaitInAQueueHaveADeadline) {
  const auto pool = or_throw(runtime.pool<Slow>({.name = "slow", .queue_deadline = 100ms}));
  auto running = pool.one<&Slow::work>(600);
  auto queued = pool.one<&Slow::work>(1);
  const auto expired = queued.get(10s);
  ASSERT_FALSE(expired);
  EXPECT_EQ(expired.error().code, Errc::kTimeout);
  EXPECT_NE(expired.error().message.find("queue deadline"), std::string::npos);
  const auto status = runtime.status().pools.front().ranks.front();
  EXPECT_NE(status.verb.find("Slow::work"), std::string::npos);
  EXPECT_GT(status.running, Duration::zero());
  EXPECT_TRUE(running.get(10s));
}

TEST_F(Calls, CompleteOnceForWaitersAndCallbacksAlike) {
  const auto pool = make(3);
  std::atomic<int> called{0};
  for (int i = 0; i < 200; ++i) {
    auto pending = pool.call<&Recorder::add>(i, i);
    pending.then([&](const Result<void>& result) { called += result ? 1 : 100; });
    ASSERT_TRUE(pending.get(5s));
  }
  ASSERT_TRUE(runtime.shutdown(5s));
  EXPECT_EQ(called, 200);
}

}  // namespace
}  // namespace troupe
