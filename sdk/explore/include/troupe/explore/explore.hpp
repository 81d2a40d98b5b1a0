#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <troupe/base/clock.hpp>
#include <troupe/base/result.hpp>

namespace troupe::explore {

class Scheduler;

/// When virtual time reaches a deadline.
enum class Passing : std::uint8_t {
  kWhenIdle,  ///< When nothing else can run: a deadline passes only where nobody would have met it.
  kAnyTime,   ///< Also, at moments the seed draws, before threads that could run: a machine as slow as can be.
};

/// Which runs, and how far each may go.
struct ExploreOptions {
  std::uint64_t first_seed = 1;
  int seeds = 100;
  Passing deadlines = Passing::kWhenIdle;
  std::int64_t max_steps = 200'000;  ///< More scheduling points in one run than this: it goes round in circles.
  Duration patience = std::chrono::seconds(20);  ///< Real time a thread may stay away from the scheduler.
  bool full_trace = false;           ///< All of a failing run's trace, not its end only.

  /// `defaults`, but for TROUPE_SEED (that one run, with its full trace) and TROUPE_SEEDS (how many).
  /// Fails with: kInvalidArgument naming the variable and what it takes.
  [[nodiscard]] static Result<ExploreOptions> from_env(ExploreOptions defaults);
};

/// One run of a scenario under one seed. Thread: any of the run.
class Trial {
 public:
  explicit Trial(Scheduler& scheduler);

  /// What the run's runtimes, conditions and threads use (RuntimeOptions::clock).
  [[nodiscard]] const std::shared_ptr<Clock>& clock() const noexcept { return clock_; }
  [[nodiscard]] std::uint64_t seed() const noexcept;
  /// A number from 0 to below - 1, drawn from the seed: how scenarios choose faults and sizes.
  [[nodiscard]] int pick(int below);
  /// True once in `n` times.
  [[nodiscard]] bool one_in(int n) { return pick(n) == 0; }
  /// Waits in virtual time.
  void sleep(Duration duration);
  /// A line for the trace.
  void note(std::string line);
  /// An invariant of the scenario: the run fails with `what` when it does not hold, and goes on to its end.
  void expect(bool holds, const std::string& what);

 private:
  Scheduler* scheduler_;
  std::shared_ptr<Clock> clock_;
};

/// What one failing seed did.
struct Failure {
  std::uint64_t seed = 0;
  std::string what;                  ///< Of the invariant, deadlock, exception or limit.
  std::vector<std::string> threads;  ///< Each thread that had not ended, and where it waits.
  std::string trace;                 ///< Its switches, time jumps, draws and notes.
  bool replays = false;              ///< A second run of the seed made the same decisions.
  [[nodiscard]] std::string describe() const;
};

/// What all runs did.
struct Exploration {
  int runs = 0;
  std::int64_t steps = 0;            ///< Scheduling points passed.
  std::int64_t switches = 0;         ///< Where another thread went on.
  int distinct = 0;                  ///< Different sequences of decisions.
  std::uint64_t hash = 0;            ///< Of all decisions: equal for equal options and scenario.
  std::optional<Failure> failure = {};  ///< The first; exploration ends with it.
};

/// Runs `scenario` once per seed, its threads one at a time: the seed draws who goes on at each wait, wake,
/// lock, yield, sleep and start, and time is virtual. Everything that waits must use `trial.clock()`, and all threads must
/// come from it (troupe::Thread): the same seed then gives the same run. Ends at the first failure: an expect()
/// that does not hold, an exception out of the scenario, threads that all wait with no deadline pending,
/// too many steps, or a thread that blocks or spins outside the scheduler.
/// Threads of a run that failed so stay parked for the rest of the process: nothing can unwind them.
/// Not seen: data races and memory order (ThreadSanitizer's matter), and what shared libraries lock.
/// Thread: one exploration at a time in a process, from a thread of the host's.
/// Source: Burckhardt et al. 2010, "A randomized scheduler with probabilistic guarantees of finding bugs"
/// (every other seed; the rest are random walks).
[[nodiscard]] Exploration explore(const ExploreOptions& options, const std::function<void(Trial&)>& scenario);

}  // namespace troupe::explore
