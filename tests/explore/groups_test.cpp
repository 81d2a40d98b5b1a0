// Collectives inside verbs and on groups alone: failures, ends of generations, deadlines, disagreement.
#include "scenarios.hpp"

#include <array>
#include <algorithm>

#include <troupe/actors/runtime.hpp>

namespace troupe::explore::test {
namespace {

using namespace std::chrono_literals;
using transport::DType;
using transport::Group;
using transport::Tensor;

template <std::size_t N>
Tensor tensor(std::array<double, N>& values) {
  return {values.data(), {DType::kF64, {static_cast<std::int64_t>(N)}, {}, {}}, nullptr, nullptr};
}

/// Computes with its peers; where the seed says, it dies, is late or does something else than they.
class Member {
 public:
  Member(Rank& rank, Trial* trial, bool meets) : rank_(rank), trial_(trial) {
    if (meets) or_throw(rank.world().barrier());  // a constructor that needs its peers
  }
  double sum(int faults) const {
    double value = rank_.index() + 1;
    Tensor one{&value, {DType::kF64, {}, {}, {}}, nullptr, nullptr};
    perhaps(faults);
    or_throw(rank_.axis("dp").all_reduce(one));
    perhaps(faults);
    or_throw(rank_.axis("tp").all_reduce(one));
    perhaps(faults);
    return value;
  }
  /// A tensor too large to be copied at once: it is lent until the peers have read it.
  double large(int faults) {
    std::array<double, 1000> values{};
    values.fill(rank_.index() + 1);
    perhaps(faults);
    or_throw(rank_.world().all_reduce(tensor(values)));
    perhaps(faults);
    return values.front() + values.back();
  }
  int disagree(int odd) const {
    if (rank_.index() != odd) {
      or_throw(rank_.world().barrier());
    } else {
      std::array<double, 1> value{};
      or_throw(rank_.world().all_reduce(tensor(value)));
    }
    return 1;
  }
  int late(int who) const {
    if (rank_.index() == who) trial_->sleep(3s);
    or_throw(rank_.world().barrier());
    return 1;
  }
  using troupe_pure = Verbs<&Member::sum, &Member::disagree, &Member::late>;

 private:
  void perhaps(int faults) const {
    if (faults > 0 && trial_->one_in(faults)) throw std::runtime_error("the rank is unwell");
  }
  Rank& rank_;
  Trial* trial_;
};

void one_call(Trial& trial, const Pool<Member>& pool, int faults) {
  const int ranks = pool.size();
  const double all = ranks * (ranks + 1) / 2.0;
  const auto told = [&](const auto& result, std::initializer_list<Errc> allowed) {
    if (result) return;
    const bool known = std::ranges::find(allowed, result.error().code) != allowed.end();
    trial.expect(known, "a call failed with what nobody caused: " + result.error().describe());
  };
  switch (trial.pick(4)) {
    case 0: {
      const auto sums = pool.call<&Member::sum>(faults).get(1h);
      for (const double sum : sums.value_or(std::vector<double>{})) trial.expect(sum == all, "NUM-1: a wrong sum");
      return told(sums, {Errc::kUserException, Errc::kPeerLost});
    }
    case 1: {
      const auto sums = pool.call<&Member::large>(faults).get(1h);
      for (const double sum : sums.value_or(std::vector<double>{})) trial.expect(sum == 2 * all, "NUM-1: a wrong sum");
      told(sums, {Errc::kUserException, Errc::kPeerLost, Errc::kInconsistent});
      if (!sums && sums.error().code == Errc::kInconsistent) expect_ok(trial, pool.reset(1h), "reset()");
      return;
    }
    case 2: {
      const auto answer = pool.call<&Member::disagree>(trial.pick(ranks)).get(1h);
      trial.expect(!answer, "TRN-8: members that disagree all fail");
      return told(answer, {Errc::kMismatch, Errc::kPeerLost});
    }
    default: {
      const TimePoint start = trial.clock()->now();
      const auto answer = pool.call<&Member::late>(trial.pick(ranks)).get(1h);
      trial.expect(!answer && trial.clock()->now() - start < 3s + 1ms, "SUP-2: a collective ends at its deadline");
      trial.sleep(3s);  // the late rank comes back: until then it would be late for the next call, too
      return told(answer, {Errc::kTimeout, Errc::kPeerLost});
    }
  }
}

void verbs_that_meet(Trial& trial) {
  RuntimeOptions options;
  options.clock = trial.clock();
  options.log = [](LogLevel, std::string_view) {};
  const auto runtime = or_throw(Runtime::create(std::move(options)));
  const int dp = 1 + trial.pick(2), faults = trial.one_in(3) ? 0 : 2 + trial.pick(10);
  const auto pool = or_throw(runtime.pool<Member>({.name = "members", .mesh = {{"dp", dp}, {"tp", 2}}, .collective_deadline = 1s}, &trial, trial.one_in(2)));
  expect_ok(trial, pool.ready(1h), "the constructors meet");
  for (int i = 0; i < 4; ++i) {
    one_call(trial, pool, faults);
    if (trial.one_in(4)) expect_ok(trial, pool.reset(1h), "reset()");
  }
  expect_ok(trial, runtime.shutdown(1h), "SUP-8: shutdown ends");
}

// SUP-2, SUP-3, POOL-7, TRN-8, NUM-1
TEST(ExploreGroups, VerbsThatMeetEndOnAllRanks) { expect_sound({.seeds = 300}, verbs_that_meet); }

/// Groups without pools: some member leaves, aborts or stops at any moment.
void members_alone(Trial& trial) {
  transport::Context context;
  context.clock = trial.clock();
  context.executor = std::make_shared<Executor>(trial.clock());
  context.log = std::make_shared<Log>([](LogLevel, std::string_view) {});
  context.counters = std::make_shared<transport::TransferCounters>();
  const int size = 2 + trial.pick(2), rounds = 1 + trial.pick(3);
  auto members = or_throw(transport::open_inproc_group(context, "tp", size));
  Tally tally(trial);
  const auto body = [&](int rank) {
    auto member = std::move(members[static_cast<std::size_t>(rank)]);
    member->begin(1, trial.clock()->after(1s));
    std::weak_ptr<int> lent;
    for (int round = 0; round < rounds; ++round) {
      if (trial.one_in(8)) return;  // leaves
      if (trial.one_in(8)) member->abort({Errc::kUserException, "enough"});
      auto keep = std::make_shared<int>(1);
      lent = keep;
      std::array<double, 700> values{};
      values.fill(rank + 1);
      Tensor mine = tensor(values);
      mine.keep = std::move(keep);
      const auto done = member->all_reduce(std::move(mine));
      trial.expect(lent.expired(), "TRN-2: bytes are still lent after the call returned");
      if (done) trial.expect(values.front() == size * (size + 1) / 2.0, "NUM-1: a wrong sum");
      if (!done) trial.expect(!member->barrier(), "after a failure every later call fails");
    }
  };
  std::vector<Thread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back(*trial.clock(), "member." + std::to_string(rank), [&body, rank] { body(rank); });
  for (auto& thread : threads) thread.join();
  trial.expect(trial.clock()->now().time_since_epoch() < Duration(std::int64_t{1} << 40) + 5s, "SUP-3: nobody waits past the deadline");
  context.executor->stop();
}

// SUP-3, TRN-2, TRN-5
TEST(ExploreGroups, MembersMayLeaveAtAnyMoment) { expect_sound({.seeds = 250}, members_alone); }
TEST(ExploreGroups, MembersMayLeaveOnASlowMachine) {
  expect_sound({.seeds = 100, .deadlines = Passing::kAnyTime}, [](Trial& trial) { members_alone(trial); });
}

}  // namespace
}  // namespace troupe::explore::test
