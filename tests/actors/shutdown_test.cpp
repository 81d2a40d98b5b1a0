#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include <troupe/actors/runtime.hpp>

namespace troupe {
namespace {

using namespace std::chrono_literals;

struct Gate {
  std::atomic<bool> open{false};
};

class Stuck {
 public:
  explicit Stuck(std::shared_ptr<Gate> gate) : gate_(std::move(gate)) {}
  int wait() {
    while (!gate_->open) std::this_thread::sleep_for(1ms);
    return 1;
  }
  int quick() { return 2; }

 private:
  std::shared_ptr<Gate> gate_;
};

// SUP-8: what is stuck in user code is listed and left; nothing blocks past the deadline
TEST(Shutdown, ListsAndLeavesWhatIsStuck) {
  auto gate = std::make_shared<Gate>();
  const auto runtime = or_throw(Runtime::create());
  const auto pool = or_throw(runtime.pool<Stuck>({.name = "stuck", .mesh = {{"dp", 2}}}, gate));
  auto running = pool.at<&Stuck::wait>(1);
  auto queued = pool.at<&Stuck::quick>(1);
  while (runtime.status().pools.front().ranks[1].verb.empty()) std::this_thread::sleep_for(1ms);
  const auto start = std::chrono::steady_clock::now();
  const auto ended = runtime.shutdown(200ms);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, Errc::kTimeout);
  EXPECT_NE(ended.error().message.find("pool stuck rank 1 in"), std::string::npos) << ended.error().message;
  EXPECT_NE(ended.error().message.find("Stuck::wait"), std::string::npos) << ended.error().message;
  EXPECT_EQ(queued.get(1s).error().code, Errc::kClosed);
  EXPECT_EQ(pool.one<&Stuck::quick>().get(1s).error().code, Errc::kClosed);
  gate->open = true;
  EXPECT_EQ(running.get(5s).value(), 1) << "what was left still ends well";
}

TEST(Shutdown, LetsRunningVerbsEnd) {
  auto gate = std::make_shared<Gate>();
  const auto runtime = or_throw(Runtime::create());
  const auto pool = or_throw(runtime.pool<Stuck>({.name = "running"}, gate));
  auto running = pool.one<&Stuck::wait>();
  while (runtime.status().pools.front().ranks[0].verb.empty()) std::this_thread::sleep_for(1ms);
  std::thread opener([&] {
    std::this_thread::sleep_for(50ms);
    gate->open = true;
  });
  EXPECT_TRUE(runtime.shutdown(10s));
  opener.join();
  EXPECT_EQ(running.get(1s).value(), 1);
  EXPECT_TRUE(runtime.shutdown(1s)) << "idempotent";
}

// X5: a monitor thread that waits for an answer while the runtime shuts down gets one
TEST(Shutdown, AnswersThreadsThatWait) {
  for (int round = 0; round < 30; ++round) {
    auto gate = std::make_shared<Gate>();
    gate->open = true;
    auto runtime = std::make_optional(or_throw(Runtime::create()));
    const auto pool = or_throw(runtime->pool<Stuck>({.name = "watched", .mesh = {{"dp", 2}}}, gate));
    std::atomic<bool> started{false};
    std::thread monitor([&] {
      for (;;) {
        const auto answer = pool.call<&Stuck::quick>().get(5s);
        started = true;
        if (!answer) {
          EXPECT_EQ(answer.error().code, Errc::kClosed) << answer.error().describe();
          return;
        }
      }
    });
    while (!started) std::this_thread::yield();
    runtime.reset();
    monitor.join();
  }
}

// the last handle may go anywhere: in a callback, or in a verb
TEST(Shutdown, TheLastHandleMayGoInACallback) {
  auto gate = std::make_shared<Gate>();
  gate->open = true;
  auto runtime = std::make_shared<std::optional<Runtime>>(or_throw(Runtime::create()));
  auto pool = std::make_shared<std::optional<Pool<Stuck>>>(or_throw((*runtime)->pool<Stuck>({.name = "owner"}, gate)));
  (*pool)->one<&Stuck::quick>().then([pool](const Result<void>&) { pool->reset(); });
  pool.reset();
  std::this_thread::sleep_for(20ms);
  EXPECT_TRUE((*runtime)->shutdown(5s));
}

}  // namespace
}  // namespace troupe
