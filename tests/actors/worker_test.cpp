// Ranks in worker processes: this program is its own worker.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <troupe/actors/runtime.hpp>

namespace troupe {

int answer_of_another_twin();   // worker_twin_test.cpp

namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

struct Config {
  std::string name;
  std::vector<double> values;
  static auto troupe_fields(auto& self) { return std::tie(self.name, self.values); }
};

struct Seen {
  int rank = -1;
  std::int64_t pid = 0;
  std::string pool;
  std::string name;
  std::vector<double> values;
  static auto troupe_fields(auto& self) { return std::tie(self.rank, self.pid, self.pool, self.name, self.values); }
};

struct Opaque {};

}  // namespace

template <>
struct Payload<Opaque> {
  static std::int64_t bytes(const Opaque&) { return 1; }
  static std::uint64_t fingerprint(const Opaque&) { return 0; }
};

namespace {

class Actor {
 public:
  Actor(Rank& rank, const Config& config) : rank_(rank), config_(config) {
    if (config.name == "throws") throw std::runtime_error("no such weights");
    if (config.name == "exits") std::exit(7);
    if (config.name == "meets") or_throw(rank.world().barrier());
  }
  Seen look() const { return {rank_.index(), getpid(), rank_.pool(), config_.name, config_.values}; }
  std::int64_t add(std::int64_t by) { return total_ += by; }
  double half(double x) const { return x / 2; }
  int world() {
    or_throw(rank_.world().barrier());
    return rank_.world_size();
  }
  void fail_on(int rank) {
    if (rank_.index() == rank) throw Exception(Error{.code = Errc::kBadData, .message = "row 17 is empty"});
    or_throw(rank_.world().barrier());
  }
  void exit_on(int rank, int code) {
    if (rank_.index() == rank) std::exit(code);
    std::this_thread::sleep_for(50ms);
  }
  void signal_on(int rank, int signal) {
    if (rank_.index() == rank) raise(signal);
  }
  std::vector<double> many(std::int64_t count) const { return std::vector<double>(static_cast<std::size_t>(count), 1.5); }
  void take(const Opaque&) {}
  void say(const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }
  void wait_for_stop() {
    while (!rank_.stop_token().stop_requested()) std::this_thread::sleep_for(1ms);
  }
  void never_return() {
    for (;;) std::this_thread::sleep_for(1s);
  }

 private:
  Rank& rank_;
  Config config_;
  std::int64_t total_ = 0;
};

/// A verb that calls exit() leaves threads behind, on purpose; ThreadSanitizer would tell, and sleep a second first.
std::map<std::string, std::optional<std::string>> worker_environment() {
  const char* options = std::getenv("TSAN_OPTIONS");
  return {{"TSAN_OPTIONS", std::string(options == nullptr ? "" : options) + ":report_thread_leaks=0:atexit_sleep_ms=0"}};
}

Runtime workers(int count, Duration heartbeat_timeout = 5s) {
  RuntimeOptions options;
  options.workers = {.count = count, .environment = worker_environment(), .heartbeat = std::min<Duration>(1s, heartbeat_timeout / 4), .heartbeat_timeout = heartbeat_timeout};
  return or_throw(Runtime::create(options));
}

Pool<Actor> make(const Runtime& runtime, int ranks, Config config = {"a", {}}) {
  return or_throw(runtime.pool<Actor>({.name = "actors", .mesh = {{"dp", ranks}}}, std::move(config)));
}

double seconds_since(std::chrono::steady_clock::time_point start) { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); }

TEST(Workers, RanksLiveInProcessesOfTheirOwn) {
  const Runtime runtime = workers(2);
  const auto pool = make(runtime, 4, {"config", {0.1, -0.0, 1e-310}});
  const auto seen = pool.call<&Actor::look>().get(20s).value();
  ASSERT_EQ(seen.size(), 4U);
  for (int rank = 0; rank < 4; ++rank) {
    const Seen& one = seen[static_cast<std::size_t>(rank)];
    EXPECT_EQ(one.rank, rank);
    EXPECT_EQ(one.pool, "actors");
    EXPECT_EQ(one.name, "config");
    EXPECT_EQ(one.values, (std::vector<double>{0.1, -0.0, 1e-310}));
    EXPECT_NE(one.pid, getpid());
  }
  EXPECT_EQ(seen[0].pid, seen[1].pid);
  EXPECT_EQ(seen[2].pid, seen[3].pid);
  EXPECT_NE(seen[0].pid, seen[2].pid);
}

TEST(Workers, CallsKeepStateAndOrder) {
  const Runtime runtime = workers(2);
  const auto pool = make(runtime, 3);
  std::vector<PendingAll<std::int64_t>> calls;
  for (int i = 1; i <= 100; ++i) calls.push_back(pool.call<&Actor::add>(i));
  EXPECT_EQ(calls.back().get(20s).value(), (std::vector<std::int64_t>{5050, 5050, 5050}));
  EXPECT_EQ(pool.at<&Actor::add>(1, 5).get(20s).value(), 5055);
  EXPECT_EQ(pool.call<&Actor::add>(per_rank(std::vector<std::int64_t>{1, 2, 3})).get(20s).value(), (std::vector<std::int64_t>{5051, 5057, 5053}));
  EXPECT_EQ(pool.one<&Actor::half>(3.0).get(20s).value(), 1.5);
}

TEST(Workers, AnErrorComesWithItsKindAndRank) {
  const Runtime runtime = workers(1);
  const auto pool = make(runtime, 2);
  const auto failed = pool.call<&Actor::fail_on>(1).get(20s);   // the other rank waits in a barrier: POOL-7
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::kBadData);
  EXPECT_EQ(failed.error().message, "row 17 is empty");
  EXPECT_EQ(failed.error().origin.pool, "actors");
  EXPECT_EQ(failed.error().origin.rank, 1);
  EXPECT_EQ(pool.call<&Actor::add>(1).get(20s).error().code, Errc::kInconsistent);
  ASSERT_TRUE(pool.reset(20s));
  EXPECT_EQ(pool.call<&Actor::world>().get(20s).value(), (std::vector<int>{2, 2}));
}

// POOL-7: constructors that meet do so on the groups of the reset, not on those that failed
TEST(Workers, ConstructorsMayMeetAgainAfterAFailure) {
  const Runtime runtime = workers(1);
  const auto pool = make(runtime, 2, {"meets", {}});
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(pool.call<&Actor::fail_on>(1).get(20s).error().code, Errc::kBadData);
    const auto reset = pool.reset(20s);
    ASSERT_TRUE(reset) << reset.error().describe();
    EXPECT_EQ(pool.call<&Actor::world>().get(20s).value(), (std::vector<int>{2, 2}));
  }
}

// SUP-3: on this host within a second, and it says how
TEST(Workers, ADeathIsKnownWithinASecond) {
  for (const bool is_exit : {true, false}) {
    const Runtime runtime = workers(2);
    const auto pool = make(runtime, 2);
    ASSERT_TRUE(pool.call<&Actor::look>().get(20s));
    const auto start = std::chrono::steady_clock::now();
    const auto died = is_exit ? pool.call<&Actor::exit_on>(1, 3).get(20s) : pool.call<&Actor::signal_on>(1, SIGKILL).get(20s);
    EXPECT_LT(seconds_since(start), 1.0);
    ASSERT_FALSE(died);
    EXPECT_EQ(died.error().code, Errc::kPeerLost);
    EXPECT_EQ(died.error().origin.rank, 1);
    EXPECT_TRUE(died.error().maybe_executed);
    EXPECT_THAT(died.error().message, HasSubstr(is_exit ? "exit code 3" : "SIGKILL"));
    EXPECT_THAT(died.error().message, HasSubstr(is_exit ? "exit_on" : "signal_on"));
    const auto after = pool.call<&Actor::add>(1).get(20s);
    EXPECT_EQ(after.error().code, Errc::kInconsistent);
  }
}

// SUP-4: the next life of a worker is another process; the survivor keeps its own
TEST(Workers, ResetBringsADeadWorkerBack) {
  const Runtime runtime = workers(2);
  const auto pool = make(runtime, 2);
  const auto before = pool.call<&Actor::look>().get(20s).value();
  ASSERT_FALSE(pool.call<&Actor::signal_on>(0, SIGKILL).get(20s));
  ASSERT_TRUE(pool.reset(20s));
  const auto after = pool.call<&Actor::look>().get(20s).value();
  EXPECT_NE(after[0].pid, before[0].pid);
  EXPECT_EQ(after[1].pid, before[1].pid);
  EXPECT_EQ(pool.call<&Actor::add>(2).get(20s).value(), (std::vector<std::int64_t>{2, 2}));
}

// other pools with ranks in the dead worker lose them too, and say so
TEST(Workers, AllPoolsOfADeadWorkerAreTold) {
  const Runtime runtime = workers(1);
  const auto first = make(runtime, 1);
  const auto second = or_throw(runtime.pool<Actor>({.name = "second", .mesh = {{"dp", 2}}}, Config{"b", {}}));
  ASSERT_TRUE(second.call<&Actor::add>(1).get(20s));
  ASSERT_FALSE(first.call<&Actor::signal_on>(0, SIGKILL).get(20s));
  ASSERT_TRUE(first.reset(20s));
  const auto told = second.call<&Actor::add>(1).get(20s);
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().code, Errc::kPeerLost);
  ASSERT_TRUE(second.reset(20s));
  EXPECT_EQ(second.call<&Actor::add>(1).get(20s).value(), (std::vector<std::int64_t>{1, 1}));
}

// SUP-10: a frozen process looks like one that works; only its silence tells
TEST(Workers, AFrozenWorkerIsFoundByItsSilence) {
  const Runtime runtime = workers(1, 400ms);
  const auto pool = make(runtime, 1);
  ASSERT_TRUE(pool.call<&Actor::look>().get(20s));
  const auto start = std::chrono::steady_clock::now();
  const auto frozen = pool.call<&Actor::signal_on>(0, SIGSTOP).get(20s);
  EXPECT_LT(seconds_since(start), 2.0);
  ASSERT_FALSE(frozen);
  EXPECT_EQ(frozen.error().code, Errc::kPeerLost);
  EXPECT_THAT(frozen.error().message, HasSubstr("not answered"));
  ASSERT_TRUE(pool.reset(20s));
  EXPECT_TRUE(pool.call<&Actor::look>().get(20s));
}

// a busy rank is not a frozen worker
TEST(Workers, LongVerbsAreNotSilence) {
  const Runtime runtime = workers(1, 400ms);
  const auto pool = make(runtime, 1);
  auto waiting = pool.call<&Actor::wait_for_stop>();
  EXPECT_EQ(waiting.get(1200ms).error().code, Errc::kTimeout);
  pool.close();   // the stop token arrives over there
  EXPECT_TRUE(waiting.get(20s));
}

// SUP-6
TEST(Workers, AConstructorThatFailsIsThePoolsError) {
  const Runtime runtime = workers(2);
  const auto throws = make(runtime, 2, {"throws", {}}).ready(20s);
  ASSERT_FALSE(throws);
  EXPECT_EQ(throws.error().code, Errc::kUserException);
  EXPECT_EQ(throws.error().message, "no such weights");
  const auto exits = make(runtime, 2, {"exits", {}}).ready(20s);
  ASSERT_FALSE(exits);
  EXPECT_EQ(exits.error().code, Errc::kPeerLost);
  EXPECT_THAT(exits.error().message, HasSubstr("exit code 7"));
  // the other worker is still in exit(): a pool made now may meet its end, a later one does not
  const auto start = std::chrono::steady_clock::now();
  while (!make(runtime, 2).call<&Actor::look>().get(20s)) ASSERT_LT(seconds_since(start), 10) << "the workers are there for the next pool";
}

TEST(Workers, GroupsReachAsFarAsTheProcess) {
  const Runtime runtime = workers(2);
  const auto pool = make(runtime, 4);
  const auto split = pool.call<&Actor::world>().get(20s);
  ASSERT_FALSE(split);
  EXPECT_EQ(split.error().code, Errc::kUnavailable);
  const Runtime one = workers(1);
  const auto together = or_throw(one.pool<Actor>({.name = "together", .mesh = {{"dp", 3}}}, Config{"a", {}}));
  EXPECT_EQ(together.call<&Actor::world>().get(20s).value(), (std::vector<int>{3, 3, 3}));
}

TEST(Workers, WhatCannotTravelIsRefusedByName) {
  const Runtime runtime = workers(1);
  const auto pool = make(runtime, 1);
  const auto opaque = pool.at<&Actor::take>(0, Opaque{}).get(20s);
  ASSERT_FALSE(opaque);
  EXPECT_EQ(opaque.error().code, Errc::kUnavailable);
  EXPECT_THAT(opaque.error().message, HasSubstr("Actor::take"));
  const auto huge = pool.at<&Actor::many>(0, 1 << 20).get(20s);
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().code, Errc::kLimit);
  EXPECT_EQ(pool.at<&Actor::many>(0, 1000).get(20s).value(), std::vector<double>(1000, 1.5));
}

class Twin {   // worker_twin_test.cpp has another, spelled alike
 public:
  int answer() const { return 1; }
};

TEST(Workers, ClassesSpelledAlikeAreNotTakenForEachOther) {
  EXPECT_EQ(answer_of_another_twin(), 2);
  const Runtime runtime = workers(1);
  const auto twins = runtime.pool<Twin>({.name = "twins"});
  ASSERT_FALSE(twins);
  EXPECT_EQ(twins.error().code, Errc::kUnavailable);
  EXPECT_THAT(twins.error().message, HasSubstr("Twin"));
}

TEST(Workers, OptionsThatCannotWorkAreRefused) {
  for (const WorkerOptions& wrong : {WorkerOptions{.count = -1}, WorkerOptions{.count = 1, .heartbeat = 0s}, WorkerOptions{.count = 1, .heartbeat = 1s, .heartbeat_timeout = 1s}}) {
    RuntimeOptions options;
    options.workers = wrong;
    const auto made = Runtime::create(options);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, Errc::kInvalidArgument);
  }
  RuntimeOptions options;
  options.workers = {.count = 1, .executable = "/bin/false"};
  const auto ended = Runtime::create(options);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, Errc::kPeerLost);
  EXPECT_THAT(ended.error().message, HasSubstr("exit code 1"));
  options.workers = {.count = 1, .executable = "/no/such/program"};
  EXPECT_EQ(Runtime::create(options).error().code, Errc::kUnavailable);
  options.workers = {.count = 1, .executable = "/bin/sleep", .arguments = {"60"}, .start_timeout = 300ms};
  const auto silent = Runtime::create(options);   // sleep ends at once: the added argument is no number
  ASSERT_FALSE(silent);
}

std::size_t entries(const char* folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

// EMB
TEST(Workers, NothingStaysOfARuntime) {
  (void)make(workers(2), 2).call<&Actor::look>().get(20s);
  const std::size_t descriptors = entries("/proc/self/fd");
  const std::size_t threads = entries("/proc/self/task");
  std::vector<std::int64_t> pids;
  for (int cycle = 0; cycle < 5; ++cycle) {
    const Runtime runtime = workers(2);
    const auto all = make(runtime, 2).call<&Actor::look>().get(20s).value();
    for (const auto& seen : all) pids.push_back(seen.pid);
    EXPECT_TRUE(runtime.shutdown(10s));
  }
  EXPECT_EQ(entries("/proc/self/fd"), descriptors);
  EXPECT_EQ(entries("/proc/self/task"), threads);
  for (const auto pid : pids) EXPECT_EQ(kill(static_cast<pid_t>(pid), 0), -1) << pid;
}

// SUP-8: what is stuck in user code is named, its process ended
TEST(Workers, ShutdownEndsWhatIsStuck) {
  const Runtime runtime = workers(1);
  const auto pool = make(runtime, 1);
  const auto pid = pool.call<&Actor::look>().get(20s).value()[0].pid;
  auto stuck = pool.call<&Actor::never_return>();
  EXPECT_EQ(stuck.get(100ms).error().code, Errc::kTimeout);   // it runs
  const auto start = std::chrono::steady_clock::now();
  const auto ended = runtime.shutdown(1s);
  EXPECT_LT(seconds_since(start), 4.0);
  ASSERT_FALSE(ended);
  EXPECT_THAT(ended.error().message, HasSubstr("never_return"));
  EXPECT_EQ(kill(static_cast<pid_t>(pid), 0), -1);
  EXPECT_FALSE(stuck.get(5s));
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  if (const auto code = troupe::worker_main(argc, argv)) return *code;
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
