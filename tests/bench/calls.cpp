#include <deque>
#include <optional>

#include <malloc.h>
#include <sched.h>

#include <troupe/actors/runtime.hpp>

#include "caf_actors.hpp"
#include "caf_baseline.hpp"
#include "rows.hpp"

namespace bench {
namespace {

using namespace std::chrono_literals;
using namespace troupe;

class Counter {
 public:
  int add(int x) { return value_ += x; }

 private:
  int value_ = 0;
};

double driver_round_trip(const Pool<Counter>& pool, int count) {
  const double start = now();
  for (int i = 0; i < count; ++i) (void)pool.at<&Counter::add>(0, 1).get(10s).value();
  return (now() - start) / count;
}

/// From a scoped CAF actor through the pool's front to the rank and back.
double actor_round_trip(const Runtime& runtime, const Pool<Counter>& pool, troupe::detail::CafWorld& world, int count) {
  caf::scoped_actor self{troupe::detail::system_of(world)};
  const auto front = troupe::detail::front_of(world, pool.core());
  const double start = now();
  for (int i = 0; i < count; ++i) {
    auto call = troupe::detail::make_call<Counter, &Counter::add>(runtime.clock(), false, static_cast<troupe::detail::verb_parameters<&Counter::add>*>(nullptr), 1);
    call->values.resize(1);
    self->request(front, caf::infinite, troupe::detail::SubmitAtom::value, troupe::detail::CafCall{call, 0}).receive([](troupe::detail::CafCall&) {}, [](caf::error&) {});
  }
  return (now() - start) / count;
}

double pipelined(const Pool<Counter>& pool, int count, std::size_t window) {
  std::deque<Pending<int>> pending;
  const double start = now();
  for (int i = 0; i < count; ++i) {
    if (pending.size() == window) {
      (void)pending.front().get(10s).value();
      pending.pop_front();
    }
    pending.push_back(pool.at<&Counter::add>(0, 1));
  }
  while (!pending.empty()) {
    (void)pending.front().get(10s).value();
    pending.pop_front();
  }
  return count / (now() - start);
}

double retained(const Pool<Counter>& pool, int count) {
  (void)pipelined(pool, 10'000, 1000);
  const auto before = mallinfo2().uordblks;
  (void)pipelined(pool, count, 1000);
  const auto after = mallinfo2().uordblks;
  return after > before ? static_cast<double>(after - before) / count : 0.0;
}

/// Where a wake-up goes decides a blocking call's time (here 10 us to the same core, 45 to another), and the
/// kernel's choice changes from second to second: so both sides get the same, fixed one.
void pin_to(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  sched_setaffinity(0, sizeof set, &set);  // of the calling thread; threads it starts inherit it
}

/// Both sides of the comparison, their threads on core `callee`, the caller on core `caller`.
struct Sides {
  Sides(int caller, int callee) {
    pin_to(callee);
    runtime.emplace(or_throw(Runtime::create()));
    one.emplace(or_throw(runtime->pool<Counter>({.name = "one"})));
    world = or_throw(troupe::detail::caf_world(runtime->core()));
    caf.emplace();
    (void)troupe::detail::front_of(*world, one->core());
    pin_to(caller);
    (void)raw();
    (void)driver();
  }
  double raw() { return 1e6 * caf->detached_round_trip(kCount); }
  double driver() { return 1e6 * driver_round_trip(*one, kCount); }
  double actor() { return 1e6 * actor_round_trip(*runtime, *one, *world, kCount); }

  static constexpr int kCount = 2000;
  std::optional<Runtime> runtime;
  std::optional<Pool<Counter>> one;
  std::shared_ptr<troupe::detail::CafWorld> world;
  std::optional<CafBaseline> caf;
};

constexpr int kRounds = 9;

void add_round_trips(std::vector<Row>& rows, int caller, int callee, const std::string& suffix) {
  Sides sides(caller, callee);
  Row rank = paired("call.rank" + suffix, "us", kRounds, [&] { return sides.actor(); }, [&] { return sides.raw(); });
  Row driver = paired("call.driver" + suffix, "us", kRounds, [&] { return sides.driver(); }, [&] { return sides.raw(); });
  for (Row* row : {&rank, &driver}) row->reason = (caller == callee ? "all on one core; " : "caller on one core, the other side on another; ") + row->reason;
  if (caller != callee) {
    rank = with_target(std::move(rank), Of::kRatio, true, 0.7);
    driver = with_target(std::move(driver), Of::kRatio, true, 1.0);
  }
  rows.push_back(std::move(rank));
  rows.push_back(std::move(driver));
}

}  // namespace

std::vector<Row> calls() {
  std::vector<Row> rows;
  cpu_set_t before;
  sched_getaffinity(0, sizeof before, &before);
  if (CPU_COUNT(&before) >= 2) {
    add_round_trips(rows, 0, 1, "");
  } else {
    rows.push_back({"call.rank", {}, "us", {}, {}, "ratio <= 0.7", {}, "needs two cores"});
  }
  add_round_trips(rows, 0, 0, ".one_core");
  sched_setaffinity(0, sizeof before, &before);
  const Runtime runtime = or_throw(Runtime::create());
  const auto one = or_throw(runtime.pool<Counter>({.name = "one"}));
  const auto eight = or_throw(runtime.pool<Counter>({.name = "eight", .mesh = {{"dp", 8}}}));
  CafBaseline caf;
  rows.push_back(single("call.all8", "us", kRounds, [&] {
    const double start = now();
    for (int i = 0; i < 500; ++i) (void)eight.call<&Counter::add>(1).get(10s).value();
    return 1e6 * (now() - start) / 500;
  }));
  rows.push_back(with_target(paired("calls.pipelined", "1/s", kRounds, [&] { return pipelined(one, 100'000, 1000); }, [&] { return caf.pipelined(100'000, 1000); }),
                             Of::kRatio, false, 0.7));
  rows.push_back(with_target(single("calls.retained", "B", 3, [&] { return retained(one, 200'000); }), Of::kValue, true, 100));
  return rows;
}

}  // namespace bench
