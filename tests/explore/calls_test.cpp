// Calls, refs, failure, reset, limits and shutdown of pools under seeded schedules and faults.
#include "scenarios.hpp"

#include <troupe/actors/runtime.hpp>

namespace troupe {
template <>
struct Payload<explore::test::Token> {
  static std::int64_t bytes(const explore::test::Token&) { return 100; }
  static std::uint64_t fingerprint(const explore::test::Token& token) { return static_cast<std::uint64_t>(token.value); }
};
}  // namespace troupe

namespace troupe::explore::test {
namespace {

using namespace std::chrono_literals;

/// What all ranks of a pool write down: which all-rank call they ran when.
struct Journal {
  explicit Journal(Trial& t, int ranks) : trial(&t), order(static_cast<std::size_t>(ranks)) {}
  Trial* trial;
  std::vector<std::vector<int>> order;
  bool running[8] = {};
};

/// A rank whose verbs fail where the seed says.
class Worker {
 public:
  Worker(Rank& rank, Journal* journal, int dies) : rank_(rank), journal_(journal) {
    if (rank.index() == dies) throw std::runtime_error("no licence");
  }
  Token all(const Token& token, int id, int faults) {
    const Turn turn(*this);
    journal_->order[index()].push_back(id);
    fail_perhaps(faults);
    or_throw(rank_.world().barrier());
    fail_perhaps(faults);
    return token;
  }
  int look(int faults) const {
    fail_perhaps(faults);
    or_throw(rank_.world().barrier());
    return 1;
  }
  Token single(const Token& token, int faults) {
    const Turn turn(*this);
    fail_perhaps(faults);
    return {token.life, token.value + 1};
  }
  int slow(int ms) {
    const Turn turn(*this);
    journal_->trial->sleep(std::chrono::milliseconds(ms));
    return ms;
  }
  using troupe_pure = Verbs<&Worker::look>;

 private:
  /// POOL-2: one verb at a time on a rank.
  struct Turn {
    explicit Turn(Worker& w) : worker(w) {
      worker.journal_->trial->expect(!std::exchange(worker.journal_->running[worker.index()], true), "POOL-2: two verbs ran at a time");
    }
    ~Turn() { worker.journal_->running[worker.index()] = false; }
    Worker& worker;
  };
  [[nodiscard]] std::size_t index() const { return static_cast<std::size_t>(rank_.index()); }
  void fail_perhaps(int faults) const {
    if (faults > 0 && journal_->trial->one_in(faults)) throw std::runtime_error("the rank is unwell");
  }
  Rank& rank_;
  Journal* journal_;
};

/// Asks a pool for this and that, as one of several callers.
class Caller {
 public:
  Caller(Trial& trial, Tally& tally, Pool<Worker> pool, int faults, int number, std::shared_ptr<int> life, bool slow)
      : trial_(trial), tally_(tally), pool_(std::move(pool)), faults_(faults), number_(number), life_(std::move(life)), slow_(slow) {}

  void operator()() {
    for (int turn = 0; turn < 4; ++turn) ask(100 * number_ + turn);
  }

 private:
  void ask(int id) {
    const Token token{life_, id};
    switch (trial_.pick(7)) {
      case 0: return answered(watched(pool_.call<&Worker::all>(token, id, faults_)).get(1h));
      case 1: return answered(watched(pool_.one<&Worker::single>(token, faults_)).get(1h), id + 1);
      case 2: return answered(watched(pool_.at<&Worker::single>(trial_.pick(pool_.size()), token, faults_)).get(1h), id + 1);
      case 3: {  // a chain by Refs: nobody waits in between
        const auto first = pool_.one<&Worker::single>(token, faults_).ref();
        return answered(watched(pool_.call<&Worker::all>(first, id, faults_)).get(1h));
      }
      case 4: return answered(watched(pool_.call<&Worker::look>(faults_)).get(1h));
      case 5: return (void)watched(pool_.call<&Worker::all>(token, id, faults_));  // dropped
      default: return answered(watched(pool_.one<&Worker::slow>(trial_.pick(50))).get(1h));
    }
  }
  /// SUP-1: its callback runs exactly once, whatever happens.
  template <class P>
  P watched(P pending) {
    tally_.began("a call's callback");
    pending.then([this](const Result<void>&) { tally_.ended("a call's callback"); });
    return pending;
  }
  template <class R>
  void answered(const R& result) {
    if (result) return;
    const Errc code = result.error().code;
    const bool known = code == Errc::kUserException || code == Errc::kPeerLost || code == Errc::kInconsistent || code == Errc::kClosed || code == Errc::kLimit || 
                       (slow_ && (code == Errc::kTimeout || code == Errc::kMismatch || code == Errc::kDeadlock));
    trial_.expect(known, "a call failed with what nobody caused: " + result.error().describe());
    if (code == Errc::kInconsistent && trial_.one_in(2)) (void)pool_.reset(1h);
  }
  template <class R>
  void answered(const R& result, int value) {
    if (result) trial_.expect(result->value == value, "an answer of another call");
    answered(result);
  }

  Trial& trial_;
  Tally& tally_;
  Pool<Worker> pool_;
  int faults_;
  int number_;
  std::shared_ptr<int> life_;
  bool slow_;
};

/// POOL-1: any two calls that two ranks both ran, they ran in the same order.
void expect_one_order(Trial& trial, const Journal& journal) {
  for (const auto& a : journal.order) {
    for (const auto& b : journal.order) {
      std::size_t from = 0;
      for (const int id : a) {
        const auto found = std::find(b.begin(), b.end(), id);
        if (found == b.end()) continue;
        const auto at = static_cast<std::size_t>(found - b.begin());
        trial.expect(at >= from, "POOL-1: two ranks ran two calls in different orders");
        from = at;
      }
    }
  }
}

RuntimeOptions quiet(Trial& trial) {
  RuntimeOptions options;
  options.clock = trial.clock();
  options.log = [](LogLevel, std::string_view) {};
  return options;
}

/// SUP-8. On a machine that slow it may leave verbs behind, which end later.
void end(Trial& trial, const Runtime& runtime, bool slow) {
  if (auto ended = runtime.shutdown(slow ? Duration::max() : 1h); !ended) expect_ok(trial, ended, "shutdown ends");
}

void callers_and_faults(Trial& trial, bool slow) {
  const int ranks = 1 + trial.pick(3), callers = 1 + trial.pick(3);
  const int faults = trial.one_in(3) ? 0 : 2 + trial.pick(12);
  Journal journal(trial, ranks);
  Tally tally(trial);
  auto life = std::make_shared<int>(0);
  {
    const auto runtime = or_throw(Runtime::create(quiet(trial)));
    const auto pool = or_throw(runtime.pool<Worker>({.name = "workers", .mesh = {{"dp", ranks}}, .limit_messages = 1 + trial.pick(6), .on_full = trial.one_in(3) ? OnFull::kFail : OnFull::kBlock},
                                                    &journal, trial.one_in(12) ? trial.pick(ranks) : -1));
    std::vector<Thread> threads;
    std::vector<std::unique_ptr<Caller>> bodies;
    for (int i = 0; i < callers; ++i) {
      bodies.push_back(std::make_unique<Caller>(trial, tally, pool, faults, i + 1, life, slow));
      threads.emplace_back(*trial.clock(), "caller." + std::to_string(i), [body = bodies.back().get()] { (*body)(); });
    }
    const bool early = trial.one_in(3);
    if (early) {  // shutdown, or the end of the pool, at any message
      trial.sleep(std::chrono::milliseconds(trial.pick(60)));
      if (trial.one_in(2)) pool.close();
      end(trial, runtime, slow);
    }
    for (auto& thread : threads) thread.join();
    if (!early && !slow && pool.ready(1h)) {  // survivors are usable
      expect_ok(trial, pool.reset(1h), "reset() of a pool that lives");
      auto after = pool.call<&Worker::all>(Token{life, 1}, 1, 0).get(1h);
      // a call gives its place back a moment after it has completed
      if (after || after.error().code != Errc::kLimit) expect_ok(trial, after, "after reset() the pool takes calls");
      const auto status = runtime.status();
      trial.expect(status.pools.size() == 1 && status.pools.front().inconsistent.empty(), "after reset() the pool is consistent");
    }
    end(trial, runtime, slow);
    bodies.clear();
  }
  tally.expect_balanced();
  expect_one_order(trial, journal);
  trial.expect(life.use_count() == 1, "POOL-8: an argument or result outlived every handle");
}

// SUP-1, SUP-3, SUP-6, SUP-8, POOL-1, POOL-2, POOL-3, POOL-4, POOL-7, POOL-8, EXP-1
TEST(ExploreCalls, CompleteOnceWhateverFails) { expect_sound({.seeds = 600}, [](Trial& trial) { callers_and_faults(trial, false); }); }

TEST(ExploreCalls, CompleteOnceOnASlowMachine) { expect_sound({.first_seed = 10'000, .seeds = 200, .deadlines = Passing::kAnyTime}, [](Trial& trial) { callers_and_faults(trial, true); }); }

}  // namespace
}  // namespace troupe::explore::test
