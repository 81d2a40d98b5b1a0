#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include <troupe/actors/runtime.hpp>
#include <troupe/base/units.hpp>

namespace troupe {
namespace {

using namespace std::chrono_literals;

class Sleeper {
 public:
  std::int64_t take(const std::vector<char>& bytes, int ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    return static_cast<std::int64_t>(bytes.size());
  }
};

class Limits : public ::testing::Test {
 protected:
  Pool<Sleeper> make(PoolOptions options) {
    options.name = "sleeper";
    return or_throw(runtime.pool<Sleeper>(std::move(options)));
  }
  Runtime runtime = or_throw(Runtime::create());
};

// POOL-3: past the limit of messages a call fails at once where asked to
TEST_F(Limits, OfMessagesFailWithTheNumbers) {
  const auto pool = make({.limit_messages = 2, .on_full = OnFull::kFail});
  auto first = pool.one<&Sleeper::take>(std::vector<char>(1), 200);
  auto second = pool.one<&Sleeper::take>(std::vector<char>(1), 0);
  const auto third = pool.one<&Sleeper::take>(std::vector<char>(1), 0).get(5s);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, Errc::kLimit);
  EXPECT_NE(third.error().message.find("2 of 2 calls"), std::string::npos) << third.error().message;
  EXPECT_TRUE(first.get(5s) && second.get(5s));
  EXPECT_TRUE(pool.one<&Sleeper::take>(std::vector<char>(1), 0).get(5s)) << "room again";
}

// POOL-3, POOL-7: reset() is the way out of a full pool, so it takes no place in it (found by exploration, seed 50)
TEST_F(Limits, DoNotRefuseReset) {
  const auto pool = make({.limit_messages = 1, .on_full = OnFull::kFail});
  auto running = pool.one<&Sleeper::take>(std::vector<char>(1), 200);
  EXPECT_TRUE(pool.reset(5s));
  (void)running.get(5s);  // a value, or kInconsistent when it had not begun
}

// POOL-3, B1: many callers with large arguments against a sleeping rank; accepted bytes stay below the limit
TEST_F(Limits, OfBytesHoldForManyCallers) {
  constexpr std::int64_t kLimit = 64 << 20;
  const auto pool = make({.limit_bytes = kLimit});
  std::atomic<std::int64_t> highest{0};
  std::atomic<bool> done{false};
  std::thread watch([&] {
    while (!done) {
      highest = std::max<std::int64_t>(highest, runtime.status().pools.front().accepted_bytes);
      std::this_thread::sleep_for(1ms);
    }
  });
  std::vector<std::thread> callers;
  std::atomic<int> answered{0};
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int i = 0; i < 4; ++i) answered += pool.one<&Sleeper::take>(std::vector<char>(24 << 20), 5).get(60s) ? 1 : 0;
    });
  }
  for (auto& caller : callers) caller.join();
  done = true;
  watch.join();
  EXPECT_EQ(answered, 16);
  EXPECT_LE(highest, kLimit);
  EXPECT_GT(highest, 0);
}

TEST_F(Limits, LetOneLargerCallPassAlone) {
  const auto pool = make({.limit_bytes = 1000});
  EXPECT_EQ(pool.one<&Sleeper::take>(std::vector<char>(5000), 0).get(5s).value(), 5000);
}

TEST_F(Limits, BlockTheCallerUntilItsDeadline) {
  const auto pool = make({.queue_deadline = 100ms, .limit_messages = 1});
  auto first = pool.one<&Sleeper::take>(std::vector<char>(1), 500);
  const auto late = pool.one<&Sleeper::take>(std::vector<char>(1), 0).get(5s);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Errc::kTimeout) << late.error().describe();
  EXPECT_TRUE(first.get(5s));
}

// a rank that fills its own pool would wait for itself
class Self {
 public:
  void know(const Pool<Self>& self) { self_.emplace(self); }
  int flood() {
    std::vector<Pending<int>> pending;
    for (int i = 0; i < 4; ++i) pending.push_back(self_->one<&Self::nothing>());
    for (auto& one : pending) {
      if (one.ready()) return static_cast<int>(one.get(1s).error().code);
    }
    return 0;
  }
  int nothing() { return 0; }
  void forget() { self_.reset(); }

 private:
  std::optional<Pool<Self>> self_;
};
TEST_F(Limits, RefuseARankThatWouldWaitForItself) {
  const auto pool = or_throw(runtime.pool<Self>({.name = "self", .limit_messages = 2}));
  ASSERT_TRUE(pool.one<&Self::know>(pool).get(5s));
  EXPECT_EQ(pool.one<&Self::flood>().get(5s).value(), static_cast<int>(Errc::kDeadlock));
  ASSERT_TRUE(pool.one<&Self::forget>().get(5s));
}

}  // namespace
}  // namespace troupe
