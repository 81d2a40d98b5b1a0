#include <csignal>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <malloc.h>

#include <troupe/actors/runtime.hpp>
#include <troupe/base/units.hpp>

namespace troupe {
namespace {

using namespace std::chrono_literals;
using namespace troupe::literals;

class Nothing {
 public:
  int verb() { return 1; }
};

std::ptrdiff_t entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

class NoEnvironment final : public RankEnvironment {
 public:
  std::unique_ptr<Scope> enter(const Rank&) override { return std::make_unique<Scope>(); }
};

RuntimeOptions two_devices() {
  RuntimeOptions options;
  options.environment = std::make_shared<NoEnvironment>();
  options.simulated_devices = {{"d0", 1_GiB}, {"d1", 1_GiB}};
  return options;
}

PoolOptions asking(std::string name, int ranks, double gpus, std::int64_t bytes = 0) {
  PoolOptions out;
  out.name = std::move(name);
  out.mesh = {{"dp", ranks}};
  out.per_rank = {.gpus = gpus, .gpu_memory_bytes = bytes};
  return out;
}

// EMB: nothing is left behind
TEST(RuntimeCycles, LeaveNoThreadDescriptorOrByte) {
  const auto cycle = [] {
    const auto runtime = or_throw(Runtime::create());
    const auto pool = or_throw(runtime.pool<Nothing>({.name = "p", .mesh = {{"dp", 3}}}));
    ASSERT_TRUE(pool.call<&Nothing::verb>().get(5s));
  };
  for (int i = 0; i < 10; ++i) cycle();
  const auto threads = entries("/proc/self/task");
  const auto descriptors = entries("/proc/self/fd");
  const auto bytes = mallinfo2().uordblks;
  for (int i = 0; i < 100; ++i) cycle();
  EXPECT_EQ(entries("/proc/self/task"), threads);
  EXPECT_EQ(entries("/proc/self/fd"), descriptors);
  EXPECT_LT(mallinfo2().uordblks, bytes + 64 * 1024);
}

TEST(RuntimeCycles, OfPoolsInOneRuntimeLeaveNoThread) {
  const auto runtime = or_throw(Runtime::create());
  for (int i = 0; i < 100; ++i) {
    const auto pool = or_throw(runtime.pool<Nothing>({.name = "again", .mesh = {{"dp", 2}}}));
    ASSERT_TRUE(pool.call<&Nothing::verb>().get(5s));
  }
  ASSERT_TRUE(runtime.shutdown(5s));
  EXPECT_TRUE(runtime.pool<Nothing>({.name = "late"}).error().code == Errc::kClosed);
}

TEST(RuntimeEmbedding, TwoLiveSideBySide) {
  const auto a = or_throw(Runtime::create());
  const auto b = or_throw(Runtime::create());
  const auto in_a = or_throw(a.pool<Nothing>({.name = "same"}));
  const auto in_b = or_throw(b.pool<Nothing>({.name = "same"}));
  ASSERT_TRUE(a.shutdown(5s));
  EXPECT_EQ(in_a.one<&Nothing::verb>().get(5s).error().code, Errc::kClosed);
  EXPECT_TRUE(in_b.one<&Nothing::verb>().get(5s));
}

TEST(RuntimeEmbedding, SignalDispositionsStayTheHosts) {
  const auto read = [] {
    std::vector<void*> out;
    for (int signal = 1; signal < 32; ++signal) {
      struct sigaction action {};
      sigaction(signal, nullptr, &action);
      out.push_back(reinterpret_cast<void*>(action.sa_handler));
    }
    return out;
  };
  const auto before = read();
  const auto runtime = or_throw(Runtime::create());
  const auto pool = or_throw(runtime.pool<Nothing>({.name = "p"}));
  ASSERT_TRUE(pool.one<&Nothing::verb>().get(5s));
  EXPECT_EQ(read(), before);
}

TEST(RuntimeNames, MustDifferWhileTheyLive) {
  const auto runtime = or_throw(Runtime::create());
  {
    const auto first = or_throw(runtime.pool<Nothing>({.name = "name"}));
    EXPECT_EQ(runtime.pool<Nothing>({.name = "name"}).error().code, Errc::kInvalidArgument);
  }
  EXPECT_TRUE(runtime.pool<Nothing>({.name = "name"})) << "free once its last handle went";
}

// RES-1, R1: a reservation binds concrete devices: two shares of 0.9 take one device each
TEST(RuntimePlacement, BindsConcreteDevices) {
  const auto runtime = or_throw(Runtime::create(two_devices()));
  const auto large = or_throw(runtime.pool<Nothing>(asking("large", 2, 0.9)));
  EXPECT_NE(large.placement().ranks[0].devices[0].device, large.placement().ranks[1].devices[0].device);
  const auto small = or_throw(runtime.pool<Nothing>(asking("small", 1, 0.1)));
  EXPECT_EQ(small.placement().ranks[0].devices[0].device, 0);
}

// RES-2, R2: fractions are packed per device: 0.18 fits 5 times on each of two, not 11 times on both
TEST(RuntimePlacement, NeverSumsFractionsOverDevices) {
  const auto runtime = or_throw(Runtime::create(two_devices()));
  const auto eleven = runtime.pool<Nothing>(asking("eleven", 11, 0.18));
  ASSERT_FALSE(eleven);
  EXPECT_EQ(eleven.error().code, Errc::kInfeasible);
  EXPECT_NE(eleven.error().message.find("rank 10 of 11"), std::string::npos) << eleven.error().message;
  EXPECT_TRUE(runtime.pool<Nothing>(asking("ten", 10, 0.18)));
}

// RES-3: impossible and busy are different errors, with the numbers
TEST(RuntimePlacement, TellsImpossibleFromBusy) {
  const auto runtime = or_throw(Runtime::create(two_devices()));
  EXPECT_EQ(runtime.pool<Nothing>(asking("never", 1, 0.5, 2_GiB)).error().code, Errc::kInfeasible);
  auto holder = runtime.pool<Nothing>(asking("holder", 2, 1));
  ASSERT_TRUE(holder);
  const auto busy = runtime.pool<Nothing>(asking("later", 1, 0.5));
  EXPECT_EQ(busy.error().code, Errc::kResourcesBusy);
  EXPECT_NE(busy.error().message.find("asked 0.5"), std::string::npos) << busy.error().message;
  holder = fail(Errc::kClosed, "");
  EXPECT_TRUE(runtime.pool<Nothing>(asking("later", 1, 0.5))) << "the reservation is free again";
}

TEST(RuntimePlacement, SharesDevicesOfAnotherPool) {
  const auto runtime = or_throw(Runtime::create(two_devices()));
  const auto a = or_throw(runtime.pool<Nothing>(asking("a", 2, 0.6)));
  auto options = asking("b", 2, 0.4);
  options.share_devices_with = "a";
  const auto b = or_throw(runtime.pool<Nothing>(std::move(options)));
  for (std::size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(b.placement().ranks[rank].devices[0].device, a.placement().ranks[rank].devices[0].device);
  }
}

TEST(RuntimeOptionsChecked, DevicesWithoutABudgetKeeperAreRefused) {
  RuntimeOptions options;
  options.simulated_devices = {{"d0", 1_GiB}};
  const auto refused = Runtime::create(std::move(options));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kUnavailable);
  EXPECT_NE(refused.error().message.find("torch_environment"), std::string::npos);
}

TEST(RuntimeOptionsChecked, FromEnvNamesVariableAndValues) {
  setenv("TROUPE_LOG", "loud", 1);
  const auto wrong = RuntimeOptions::from_env();
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("TROUPE_LOG is 'loud'; accepted: debug, info, warning, error"), std::string::npos);
  setenv("TROUPE_LOG", "info", 1);
  EXPECT_EQ(or_throw(RuntimeOptions::from_env()).log_level, LogLevel::kInfo);
  unsetenv("TROUPE_LOG");
}

TEST(RuntimeOptionsChecked, BadPoolsAreRefused) {
  const auto runtime = or_throw(Runtime::create());
  EXPECT_EQ(runtime.pool<Nothing>({.name = "a", .mesh = {{"dp", 0}}}).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(runtime.pool<Nothing>({.name = "b", .limit_messages = 0}).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(runtime.pool<Nothing>({.name = "c", .queue_deadline = 0s}).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(runtime.pool<Nothing>({.name = "d", .share_devices_with = "nobody"}).error().code, Errc::kInvalidArgument);
}

}  // namespace
}  // namespace troupe
