// Ranks in worker processes, beside what the operating system and raw CAF io take for the same.
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <optional>
#include <thread>

#include <unistd.h>

#include <troupe/actors/runtime.hpp>

#include "caf_baseline.hpp"
#include "peer.hpp"
#include "rows.hpp"

namespace bench {
namespace {

using namespace std::chrono_literals;
using namespace troupe;

constexpr int kProcesses = 8;

class Tally {
 public:
  int add(int x) { return value_ += x; }
  std::int64_t pid() const { return getpid(); }
  void die() { raise(SIGKILL); }

 private:
  int value_ = 0;
};

Runtime with_workers(int count) {
  RuntimeOptions options;
  options.workers = {.count = count};
  return or_throw(Runtime::create(std::move(options)));
}

double round_trip(const Pool<Tally>& pool, int count) {
  const double start = now();
  for (int i = 0; i < count; ++i) (void)pool.at<&Tally::add>(0, 1).get(10s).value();
  return 1e6 * (now() - start) / count;
}

Row call_process() {
  constexpr int kCount = 2000;
  const Runtime runtime = with_workers(1);
  const auto pool = or_throw(runtime.pool<Tally>({.name = "one"}));
  Peer adder({"/proc/self/exe", "--caf-adder"});
  CafRemote caf(std::stoi(adder.ask("port")));
  (void)round_trip(pool, kCount);
  (void)caf.round_trip(kCount);
  return with_target(paired("call.process", "us", 9, [&] { return round_trip(pool, kCount); }, [&] { return 1e6 * caf.round_trip(kCount); }), Of::kRatio, true, 1.3);
}

/// From nothing to eight ranks that have answered.
double spawn_ours() {
  const double start = now();
  const Runtime runtime = with_workers(kProcesses);
  const auto pool = or_throw(runtime.pool<Tally>({.name = "eight", .mesh = {{"dp", kProcesses}}}));
  (void)or_throw(pool.call<&Tally::add>(1).get(60s));
  return now() - start;
}

/// From nothing to eight programs of the same libraries that have said a word.
double spawn_bare() {
  const double start = now();
  std::vector<std::thread> starting;   // side by side, as ours are
  std::vector<std::unique_ptr<Peer>> peers(kProcesses);
  for (auto& peer : peers) {
    starting.emplace_back([&peer] { peer = std::make_unique<Peer>(std::vector<std::string>{"/proc/self/exe", "--bare"}); });
  }
  for (auto& one : starting) one.join();
  return now() - start;
}

/// One of eight killed, until all eight have answered again.
double restart_once(const Pool<Tally>& pool) {
  const double start = now();
  (void)pool.at<&Tally::die>(3).get(10s);
  or_throw(pool.reset(60s));
  (void)or_throw(pool.call<&Tally::add>(1).get(60s));
  return 1e3 * (now() - start);
}

/// Of one core, over two seconds in which nobody asks for anything.
double idle_share(std::int64_t pid) {
  const auto ticks = [pid] {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string word;
    std::int64_t sum = 0;
    for (int field = 1; file >> word && field <= 15; ++field) {
      if (field >= 14) sum += std::stoll(word);   // user and system time
    }
    return sum;
  };
  const std::int64_t before = ticks();
  std::this_thread::sleep_for(2s);
  return 100.0 * static_cast<double>(ticks() - before) / static_cast<double>(sysconf(_SC_CLK_TCK)) / 2;
}

}  // namespace

int serve(const std::string& what) {
  std::optional<CafAdder> adder;
  if (what == "--caf-adder") adder.emplace();
  std::printf("ready\n");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    std::printf("%d\n", adder ? adder->port() : 0);
    std::fflush(stdout);
  }
  return 0;
}

std::vector<Row> processes() {
  std::vector<Row> rows;
  rows.push_back(call_process());
  rows.push_back(with_target(paired("spawn.process8", "s", 5, spawn_ours, spawn_bare), Of::kRatio, true, 1.25));
  const Runtime runtime = with_workers(kProcesses);
  const auto pool = or_throw(runtime.pool<Tally>({.name = "eight", .mesh = {{"dp", kProcesses}}}));
  const std::int64_t pid = or_throw(pool.at<&Tally::pid>(0).get(10s));
  rows.push_back(with_target(single("idle.cpu", "% of a core", 3, [&] { return idle_share(pid); }), Of::kValue, true, 1));
  rows.push_back(with_target(single("restart.process", "ms", 5, [&] { return restart_once(pool); }), Of::kValue, true, 2000));
  return rows;
}

}  // namespace bench
