#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <troupe/actors/wire.hpp>
#include <troupe/base/clock.hpp>
#include <troupe/base/result.hpp>

namespace troupe {
class Rank;
}

namespace troupe::detail {

class PoolCore;

/// What a verb is, apart from its arguments.
struct VerbInfo {
  std::string_view name;      ///< For messages: "Counter::add".
  bool is_pure = false;       ///< Changes no state: a failure leaves the pool consistent (POOL-7).
  bool is_idempotent = false; ///< May be retried (SUP-5).
};

/// One call on one or all ranks of a pool: its arguments, and later its values. Refs keep it alive: it is
/// the table entry of POOL-8. Completes exactly once (SUP-1): with all values, or with the first error.
class CallBase : public std::enable_shared_from_this<CallBase> {
 public:
  using Done = std::function<void()>;
  /// What to run at completion: on the executor, or at once where it only hands over (adapters of ours).
  struct Completion {
    Done run;
    bool at_once = false;
  };

  explicit CallBase(Clock& clock) : changed_(clock) {}
  virtual ~CallBase() = default;
  CallBase(const CallBase&) = delete;
  CallBase& operator=(const CallBase&) = delete;

  // --- filled in by the typed layer before submit ---
  VerbInfo verb;
  bool check_arguments = false;          ///< Compare fingerprints at completion (POOL-5).
  std::int64_t argument_bytes = 0;
  /// Calls whose values rank `index` needs first (POOL-6). Appends.
  virtual void dependencies(int index, std::vector<std::shared_ptr<CallBase>>& out) const = 0;
  /// Runs the verb on `object` and stores its value; throws what the user code throws.
  /// `slot` is 0 for single-rank calls, else the rank's index.
  virtual void run(void* object, Rank& rank, int slot) = 0;
  /// For a rank in a worker: which verb, its arguments, and its value back. False: something of it can't travel.
  std::uint64_t wire_id = 0;
  [[nodiscard]] virtual bool write_arguments(int /*rank*/, WireWriter& /*to*/) const { return false; }
  virtual void read_value(int /*slot*/, WireReader& /*from*/) {}
  /// Frees the arguments once no rank needs them.
  virtual void drop_arguments() noexcept = 0;
  /// Empty, or which argument changed since submit.
  [[nodiscard]] virtual std::string changed_argument() const = 0;

  // --- state, managed by PoolCore ---
  std::shared_ptr<PoolCore> pool;        ///< Null for put() values and once complete.
  std::uint64_t ticket = 0;
  int only_rank = -1;                    ///< -1: every rank.
  std::atomic<int> taker{-1};            ///< The rank that took a call for whichever is free.
  int width = 1;
  std::uint64_t generation = 0;          ///< Of the groups; 0: not started on any rank.
  Deadline queue_deadline = Deadline::never();
  std::atomic<int> remaining{0};         ///< Ranks that have neither run nor skipped it.
  std::atomic<int> unfinished{0};        ///< Ranks that have not run it well.

  // --- completion ---
  [[nodiscard]] bool complete() const noexcept { return complete_.load(std::memory_order_acquire); }
  /// Completes with success (no error) or failure; false when it was complete already.
  /// Adds what is to run then; the caller runs it outside its locks (SUP-7).
  bool finish(std::shared_ptr<const Error> error, std::vector<Completion>& to_run);
  /// Waits for completion. False: deadline passed.
  [[nodiscard]] bool wait(Deadline deadline);
  /// The same for a rank that resolves an argument of `reader`: also ends when that is complete.
  [[nodiscard]] bool wait_unless(Deadline deadline, const CallBase& reader);
  /// Wakes waiters so that they look again.
  void poke();
  /// Null on success. Valid once complete.
  [[nodiscard]] const std::shared_ptr<const Error>& error() const noexcept { return error_; }
  /// False when complete already (the caller then runs it itself).
  bool add_done(Done done, bool at_once = false);

 private:
  std::mutex mutex_;
  Condition changed_;
  std::atomic<bool> complete_{false};
  std::shared_ptr<const Error> error_;
  std::vector<Completion> done_;
};

/// Waits for `call` on behalf of the current thread. On a rank's thread the wait is registered, and one
/// that would close a cycle of ranks is kDeadlock at once (POOL-6).
[[nodiscard]] Result<void> wait_for(CallBase& call, Deadline deadline);

/// `deadline` from a duration on the clock of the call's runtime.
[[nodiscard]] Deadline deadline_of(CallBase& call, Duration duration);

/// Runs `done` on the runtime's executor once the call is complete.
void when_complete(const std::shared_ptr<CallBase>& call, CallBase::Done done);

/// The typed values of a call.
template <class R>
class TypedCall : public CallBase {
 public:
  using CallBase::CallBase;
  std::vector<std::optional<R>> values;  ///< One per rank, or one.
  std::atomic<bool> has_refs{false};     ///< get() then copies, refs must stay whole.
};

}  // namespace troupe::detail
