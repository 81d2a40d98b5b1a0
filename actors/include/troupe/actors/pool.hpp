#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <troupe/actors/pending.hpp>
#include <troupe/actors/verb_call.hpp>

namespace troupe {

enum class OnFull : std::uint8_t {
  kBlock,  ///< The caller waits, up to the call's queue deadline, then kTimeout.
  kFail,   ///< kLimit at once.
};

/// What one pool asks for and promises its callers.
struct PoolOptions {
  std::string name = {};                   ///< Unique in its runtime; "" makes one from the class name.
  Mesh mesh = {};                          ///< Its size is the number of ranks.
  Resources per_rank = {};
  std::string share_devices_with = {};     ///< Name of a pool beside whose ranks these are placed.
  Duration queue_deadline = std::chrono::minutes(10);       ///< A call not started by then is kTimeout (SUP-2).
  Duration collective_deadline = std::chrono::minutes(10);  ///< Of each collective inside a verb.
  std::int64_t limit_messages = 4096;      ///< Calls accepted and not complete (POOL-3).
  std::int64_t limit_bytes = 4LL << 30;    ///< Their argument bytes; one larger call may pass alone.
  OnFull on_full = OnFull::kBlock;
  std::shared_ptr<RankEnvironment> environment = {};        ///< Null: the runtime's.
};

namespace detail {

class RuntimeCore;
using Factory = std::function<std::shared_ptr<void>(Rank&)>;

/// How the objects of a pool are made: here, and in a worker.
struct PoolClass {
  Factory make;
  std::uint64_t wire_id = 0;
  std::string_view name = {};
  std::function<void(WireWriter&)> write_arguments = {};   ///< Empty: an argument of the constructor can't travel.
};


[[nodiscard]] Result<std::shared_ptr<PoolCore>> make_pool(const std::shared_ptr<RuntimeCore>& runtime, PoolOptions options,
                                                          PoolClass made);
/// Gives the call its ticket and queues it, or completes it with the reason why not (POOL-3, POOL-6).
/// `only_rank`: -1 every rank, -2 a free one.
void submit(const std::shared_ptr<PoolCore>& pool, const std::shared_ptr<CallBase>& call, int only_rank);
void complete_with_error(const std::shared_ptr<PoolCore>& pool, const std::shared_ptr<CallBase>& call, Error error);
[[nodiscard]] int pool_size(const PoolCore& pool);
[[nodiscard]] const PoolOptions& pool_options(const PoolCore& pool);
[[nodiscard]] Clock& pool_clock(const PoolCore& pool);
[[nodiscard]] bool pool_checks_arguments(const PoolCore& pool);
[[nodiscard]] const Placement& pool_placement(const PoolCore& pool);
[[nodiscard]] Result<void> pool_ready(const std::shared_ptr<PoolCore>& pool, Duration timeout);
[[nodiscard]] Result<void> pool_reset(const std::shared_ptr<PoolCore>& pool, Duration timeout);
void pool_close(const std::shared_ptr<PoolCore>& pool);
/// Counts user handles: the pool closes when the last one goes.
[[nodiscard]] std::shared_ptr<const void> pool_handle(const std::shared_ptr<PoolCore>& pool);

}  // namespace detail

/// Objects of class T, one per rank, each on its own thread: Ray-style actors, typed.
/// A verb is any public member function whose parameters and result are payloads; wrong calls do not
/// compile. A value, copyable and thread-safe; the pool closes with its last handle.
template <class T>
class Pool {
 public:
  explicit Pool(std::shared_ptr<detail::PoolCore> core) : core_(std::move(core)), handle_(detail::pool_handle(core_)) {}

  [[nodiscard]] int size() const { return detail::pool_size(*core_); }
  [[nodiscard]] const std::string& name() const { return detail::pool_options(*core_).name; }
  [[nodiscard]] const Mesh& mesh() const { return detail::pool_options(*core_).mesh; }
  [[nodiscard]] const Placement& placement() const { return detail::pool_placement(*core_); }

  /// Runs verb F on every rank, in one total order with all other all-rank calls (POOL-1). Arguments
  /// go to every rank as they are, or one each by per_rank().
  template <auto F, class... X>
    requires VerbCall<F, T, X...>
  PendingAll<detail::verb_value<F>> call(X&&... x) const {
    return PendingAll<detail::verb_value<F>>(start<F>(-1, std::forward<X>(x)...));
  }

  /// Runs verb F on whichever rank is free first (POOL-4). No Group inside (POOL-2).
  template <auto F, class... X>
    requires SingleVerbCall<F, T, X...>
  Pending<detail::verb_value<F>> one(X&&... x) const {
    return Pending<detail::verb_value<F>>(start<F>(-2, std::forward<X>(x)...));
  }

  /// Runs verb F on rank `rank` only. No Group inside (POOL-2).
  template <auto F, class... X>
    requires SingleVerbCall<F, T, X...>
  Pending<detail::verb_value<F>> at(int rank, X&&... x) const {
    return Pending<detail::verb_value<F>>(start<F>(rank, std::forward<X>(x)...));
  }

  /// Waits until every rank's constructor has ended. Fails with what it threw (SUP-6), kTimeout.
  [[nodiscard]] Result<void> ready(Duration timeout) const { return detail::pool_ready(core_, timeout); }

  /// Builds every object anew with the original constructor arguments, after which an inconsistent pool
  /// takes calls again (POOL-7). Calls queued before it fail with kInconsistent.
  [[nodiscard]] Result<void> reset(Duration timeout) const { return detail::pool_reset(core_, timeout); }

  /// Refuses new calls, fails the queued ones with kClosed, lets running ones end. Does not wait.
  void close() const { detail::pool_close(core_); }

  [[nodiscard]] const std::shared_ptr<detail::PoolCore>& core() const noexcept { return core_; }

 private:
  template <auto F, class... X>
  auto start(int only_rank, X&&... x) const {
    const std::string wrong = per_rank_mismatch(x...);
    auto call = detail::make_call<T, F>(detail::pool_clock(*core_), detail::pool_checks_arguments(*core_),
                                        static_cast<detail::verb_parameters<F>*>(nullptr), std::forward<X>(x)...);
    call->values.resize(only_rank == -1 ? static_cast<std::size_t>(size()) : 1);
    if (wrong.empty()) {
      detail::submit(core_, call, only_rank);
    } else {
      detail::complete_with_error(core_, call, Error{Errc::kInvalidArgument, wrong, {name()}});
    }
    return std::shared_ptr<detail::TypedCall<detail::verb_value<F>>>(std::move(call));
  }

  template <class... X>
  std::string per_rank_mismatch(const X&... x) const {
    std::string out;
    [[maybe_unused]] const auto look = [&](const auto& one) {
      if constexpr (is_per_rank<std::decay_t<decltype(one)>>) {
        if (static_cast<int>(one.values.size()) != size()) {
          out = text("per_rank() has ", one.values.size(), " values, the pool has ", size(), " ranks: give one each");
        }
      }
    };
    (look(x), ...);
    return out;
  }

  std::shared_ptr<detail::PoolCore> core_;
  std::shared_ptr<const void> handle_;
};

/// A pool handle is an ordinary value, also inside a verb's arguments.
template <class T>
struct Payload<Pool<T>> {
  static std::int64_t bytes(const Pool<T>&) { return sizeof(Pool<T>); }
  static std::uint64_t fingerprint(const Pool<T>& pool) { return reinterpret_cast<std::uintptr_t>(pool.core().get()); }
};

}  // namespace troupe
