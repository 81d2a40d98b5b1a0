#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <typeindex>
#include <vector>

#include <troupe/actors/pool.hpp>
#include <troupe/actors/runtime.hpp>
#include "groups.hpp"
#include "rank_host.hpp"
#include "wait_graph.hpp"

namespace troupe::detail {

/// What all pools of a runtime share; outlives them.
struct Services {
  transport::Context transport;
  WaitGraph waits;
  bool check_arguments = false;

  [[nodiscard]] Clock& clock() const { return *transport.clock; }
};

using CallPtr = std::shared_ptr<CallBase>;
using ErrorPtr = std::shared_ptr<const Error>;

inline constexpr int kEveryRank = -1;
inline constexpr int kFreeRank = -2;
inline constexpr int kRebuild = -3;  ///< Every rank builds its object anew (reset).

/// What the code of a rank can ask about its pool, in whatever process it runs.
struct PoolHome {
  PoolHome(std::shared_ptr<Services> s, PoolOptions o, Placement p) : services(std::move(s)), options(std::move(o)), placement(std::move(p)) {}
  [[nodiscard]] int size() const noexcept { return options.mesh.size(); }
  /// Fails with: kUnavailable when members live in other processes.
  [[nodiscard]] Result<void> can_group(const std::vector<int>& members) const;

  std::vector<int> workers = {};   ///< Of each rank; empty: all in this process.
  int worker = 0;                  ///< This process.
  const std::shared_ptr<Services> services;
  const PoolOptions options;
  const Placement placement;
  GroupTable groups;
};

/// What the code on a rank's thread can reach; what a Rank points to. The rank's own thread, but `stop`.
class RankState {
 public:
  RankState(PoolHome& pool, int index);

  PoolHome& pool;
  const int index;
  bool groups_allowed = true;          ///< POOL-2: not inside `one` and `at` verbs.
  std::uint64_t ticket = 0;            ///< Of the verb that runs.
  std::uint64_t generation = 1;        ///< Of its groups.
  std::atomic<std::uint64_t> done_ticket{0};  ///< The last verb it is done with; any thread.
  std::map<std::string, std::unique_ptr<AxisGroup>> groups;
  std::map<std::type_index, std::shared_ptr<void>> attachments;
  std::stop_source stop;
};

/// A rank as the pool sees it. Guarded by the pool's mutex but for `state`.
struct RankSlot {
  RankSlot(PoolHome& pool, int index, Clock& clock, std::unique_ptr<RankHost> h) : state(pool, index), host(std::move(h)), wake(clock) {}

  RankState state;
  const std::unique_ptr<RankHost> host;   ///< Used by the rank's own thread.
  std::deque<CallPtr> queue;
  Condition wake;
  bool sleeping = false;
  CallPtr running;                     ///< Also while it resolves its arguments.
  TimePoint since;
  CallPtr resolving;                   ///< The call it waits for at the head of its queue.
  std::shared_ptr<RankEnvironment::Scope> scope;
  bool ended = false;
  Thread thread;
};

/// A pool: its queues, limits, failures. Decisions are made under one mutex, user code and callbacks run
/// outside it (SUP-7). Each rank's thread shares ownership, so that one left behind by shutdown is safe.
class PoolCore : public PoolHome, public std::enable_shared_from_this<PoolCore> {
 public:
  PoolCore(std::shared_ptr<Services> services, PoolOptions options, Placement placement, std::shared_ptr<RankHosts> hosts);

  void start();
  void submit(const CallPtr& call, int only_rank);
  void complete_with_error(const CallPtr& call, Error error);
  [[nodiscard]] Result<void> ready(Duration timeout);
  [[nodiscard]] Result<void> reset(Duration timeout);
  void close();
  /// Joins ranks that end by `until`; the others are left and described (SUP-8).
  [[nodiscard]] std::vector<std::string> join(Deadline until);
  [[nodiscard]] bool ended();
  [[nodiscard]] bool closing();
  /// True when every rank has ended by `until`.
  [[nodiscard]] bool wait_ended(Deadline until);
  [[nodiscard]] PoolStatus status();
  [[nodiscard]] std::shared_ptr<const void> handle();

  [[nodiscard]] RankState& state(int rank) { return slots_[static_cast<std::size_t>(rank)]->state; }

 private:
  friend class RankLoop;
  using Lock = std::unique_lock<std::mutex>;
  using ToRun = std::vector<CallBase::Completion>;

  // limits.cpp
  [[nodiscard]] std::optional<Error> admit(Lock& lock, const CallPtr& call);
  void release(const CallPtr& call);
  void arm_expiry(Deadline first);
  void expire();

  // failure.cpp
  void fail_ticket(const CallPtr& call, Error error, int rank);
  void doom_started(std::uint64_t generation, const Error& cause, ToRun& to_run);
  void fail_queued(const Error& error, bool spare_pure, ToRun& to_run);
  void fail_pool(Error error);

  [[nodiscard]] std::optional<Error> refusal(const CallPtr& call) const;
  void enqueue(const CallPtr& call, int only_rank);
  void finish(const CallPtr& call, ErrorPtr error, ToRun& to_run);
  void skip(const CallPtr& call, ToRun& to_run);
  void wake(RankSlot& slot);
  void run_later(ToRun to_run);
  [[nodiscard]] Origin origin(int rank) const { return {.pool = options.name, .rank = rank}; }

  const std::shared_ptr<RankHosts> hosts_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<RankSlot>> slots_;
  std::deque<CallPtr> shared_;           ///< `one` calls: for whichever rank is free.
  std::uint64_t next_ticket_ = 1;
  std::uint64_t generation_ = 1;
  ErrorPtr inconsistent_;                ///< POOL-7: until reset().
  std::uint64_t reset_ticket_ = 0;       ///< Of the last reset(): older calls' failures no longer matter.
  ErrorPtr failed_;                      ///< A constructor failed (SUP-6).
  bool closing_ = false;
  int constructed_ = 0;
  Condition changed_;                    ///< Constructors, ends.
  Condition room_;                       ///< Limits.
  int blocked_callers_ = 0;
  std::int64_t accepted_messages_ = 0;
  std::int64_t accepted_bytes_ = 0;
  Deadline expiry_ = Deadline::never();  ///< What the timer is set to.
  Executor::TimerId expiry_timer_ = 0;
  std::weak_ptr<const void> handle_;
};

/// The RankState of the calling thread, or null.
[[nodiscard]] RankState* current_rank() noexcept;
void set_current_rank(RankState* state) noexcept;

}  // namespace troupe::detail
