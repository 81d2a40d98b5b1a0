#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <troupe/explore/explore.hpp>

#include "gate.hpp"
#include "strategy.hpp"

namespace troupe::explore {

enum class State : std::uint8_t { kRunnable, kCondition, kMutex, kJoin, kSleep, kDone };

/// Why a decision was made: what the thread that had the baton was about to do.
enum class Kind : std::uint8_t { kStart, kLock, kUnlock, kWait, kWake, kYield, kSleep, kJoin, kEnd, kTime, kDraw, kNote };

/// One thread of a run. Written only by whoever has the baton.
struct Runner {
  int index = 0;
  std::string name;
  Scheduler* scheduler = nullptr;
  State state = State::kRunnable;
  const void* on = nullptr;       ///< The condition, mutex or Runner it waits for.
  CallSite at;
  Deadline until = Deadline::never();
  std::uint64_t priority = 0;
  int initialising = 0;           ///< Inside the initialisation of a static: others would block on it unseen.
  int idle_looks = 0;             ///< Clock reads since its last step: a loop that only reads time must end too.
  std::thread::id id;
  Gate gate;
};

/// The Runner of the calling thread, or null.
[[nodiscard]] Runner* current_runner() noexcept;

struct Event {
  std::int64_t step;
  std::int64_t time;  ///< Virtual, ns.
  int from;
  int to;             ///< Another runner, or what was drawn, or the index of the note.
  Kind kind;
};

/// Passes one baton among the threads of one run, in an order and at a virtual time drawn from its seed.
/// Its state belongs to whoever has the baton; only what the watchdog reads is atomic.
class Scheduler : public std::enable_shared_from_this<Scheduler> {
 public:
  Scheduler(std::uint64_t seed, const ExploreOptions& options);

  // --- the thread that explores ---
  /// Runs `body` as the first thread, and whatever it starts, until all have ended or one failure was found.
  void run(std::function<void()> body);
  [[nodiscard]] std::optional<Failure> take_failure() { return std::move(failure_); }
  [[nodiscard]] std::int64_t steps() const { return steps_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t switches() const { return switches_; }
  [[nodiscard]] std::uint64_t hash() const { return hash_; }
  [[nodiscard]] std::uint64_t seed() const { return seed_; }

  // --- threads of the run, with the baton ---
  /// A moment at which another thread may go on.
  void point(Runner& me, Kind kind);
  /// The same, and others go first.
  void yield(Runner& me);
  /// Leaves the baton until woken or past `until`.
  void block(Runner& me, State state, Kind kind, const void* on, Deadline until, CallSite at = {});
  void wake(const void* on, State state);
  void look_at_time(Runner& me);
  [[nodiscard]] int draw(Runner& me, int below);
  void note(Runner& me, std::string line);
  void broken(const std::string& what);
  [[nodiscard]] std::thread start(Clock& threads, const std::string& name, std::function<void()> body);
  void join(Runner& me, std::thread& thread);
  void locked(const Runner& me, const void* mutex) { owners_[mutex] = me.index; }
  void unlocked(const void* mutex);
  [[nodiscard]] bool owns(const void* mutex) const { return owners_.contains(mutex); }

  // --- any thread ---
  [[nodiscard]] TimePoint now() const noexcept { return TimePoint(Duration(time_.load(std::memory_order_relaxed))); }
  [[nodiscard]] bool over() const noexcept { return over_.load(std::memory_order_acquire); }
  /// A thread that is none of the run's used its clock.
  void intruded() noexcept { intruded_.store(true, std::memory_order_relaxed); }

 private:
  Runner& add(const std::string& name);
  void end(Runner& me);
  void take_step(Runner& me);
  [[nodiscard]] Runner* choose(Runner* current, bool others_first);
  void collect_runnable();
  [[nodiscard]] bool jump();
  void hand_over(Runner& me, Runner* next, Kind kind);
  void record(Event event);
  void give_up(Runner* me, const std::string& what);
  void park(Runner& me);
  void watch();
  // report.cpp
  [[nodiscard]] std::string where(const Runner& runner) const;
  [[nodiscard]] std::string line_of(const Event& event) const;
  void conclude(const std::string& what);

  const std::uint64_t seed_;
  const ExploreOptions options_;
  Strategy strategy_;
  Draws draws_;  ///< The scenario's draws and the jumps.
  std::uint64_t jump_odds_ = 0;
  std::vector<std::unique_ptr<Runner>> runners_;
  std::vector<Runner*> runnable_;  ///< Reused.
  std::unordered_map<const void*, int> owners_;
  std::vector<Event> events_;
  std::vector<std::string> notes_;
  std::uint64_t hash_ = 0xcbf29ce484222325U;
  std::int64_t switches_ = 0;
  std::string broken_;
  std::optional<Failure> failure_;
  std::thread first_;
  Gate ended_;
  std::atomic<std::int64_t> steps_{0};
  std::atomic<std::int64_t> time_{0};
  std::atomic<int> running_{0};
  std::atomic<bool> over_{false};
  std::atomic<bool> given_up_{false};
  std::atomic<bool> intruded_{false};
};

/// The Clock of a run.
[[nodiscard]] std::shared_ptr<Clock> seeded_clock(std::shared_ptr<Scheduler> scheduler);

}  // namespace troupe::explore
