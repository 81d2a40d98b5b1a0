// Four counters on four threads, or with --workers N in N processes: calls on all of them, on one, on a free one; values that stay where they are.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include <troupe/actors/runtime.hpp>

using namespace std::chrono_literals;

class Counter {
 public:
  Counter(troupe::Rank& rank, int start) : value_(start + rank.index()) {}
  int add(int amount) { return value_ += amount; }
  int divide(int by) {
    if (by == 0) throw std::invalid_argument("division by zero");
    return value_ / by;
  }

 private:
  int value_;
};

/// Whatever is not "--workers N" is said to be wrong.
static troupe::Result<troupe::RuntimeOptions> options_of(int argc, char** argv) {
  troupe::RuntimeOptions options;
  if (argc == 1) return options;
  if (argc == 3 && std::strcmp(argv[1], "--workers") == 0) options.workers.count = std::atoi(argv[2]);
  if (options.workers.count < 1) return troupe::fail(troupe::Errc::kInvalidArgument, "usage: hello_pool [--workers N]");
  return options;
}

int main(int argc, char** argv) {
  if (const auto code = troupe::worker_main(argc, argv)) return *code;   // this program is its own worker
  const auto options = options_of(argc, argv);
  if (!options) return std::fprintf(stderr, "%s\n", options.error().message.c_str()), 2;
  auto runtime = troupe::Runtime::create(*options).value();
  auto counters = runtime.pool<Counter>({.name = "counters", .mesh = {{"dp", 4}}}, 100).value();

  const auto all = counters.call<&Counter::add>(1).get(5s).value();                       // every rank
  std::printf("all ranks: %d %d %d %d\n", all[0], all[1], all[2], all[3]);

  const auto each = counters.call<&Counter::add>(troupe::per_rank<int>({1, 2, 3, 4})).get(5s).value();
  std::printf("one argument each: sum %d\n", std::accumulate(each.begin(), each.end(), 0));

  auto kept = counters.at<&Counter::add>(2, 10).ref();                                    // stays on rank 2
  std::printf("by reference: %d\n", counters.one<&Counter::add>(kept).get(5s).value());   // whichever is free

  const auto failed = counters.at<&Counter::divide>(0, 0).get(5s);
  std::printf("a failure is a value: %s\n", failed.error().describe().c_str());
}
