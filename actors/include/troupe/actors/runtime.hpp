#pragma once

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <troupe/actors/pool.hpp>
#include <troupe/actors/worker.hpp>
#include <troupe/base/log.hpp>

namespace troupe {

namespace detail {

/// Puts T into this program's table because a pool of it is made somewhere.
template <class T, class... Args>
struct WireClassEntry {
  static inline const bool added = add_wire_class(class_id<T, Args...>(), wire_class<T, Args...>(class_name_view<T>()));
};

template <class T, class... Args>
PoolClass pool_class(Args... args) {
  (void)WireClassEntry<T, Args...>::added;
  const auto shared = std::make_shared<const std::tuple<Args...>>(std::move(args)...);
  PoolClass out{.make = [shared](Rank& rank) { return construct<T>(rank, *shared); }, .wire_id = class_id<T, Args...>(), .name = class_name_view<T>()};
  if constexpr ((WireType<Args> && ...)) {
    out.write_arguments = [shared](WireWriter& to) {
      std::apply([&to](const auto&... a) { (Payload<std::decay_t<decltype(a)>>::write(to, a), ...); }, *shared);
    };
  }
  return out;
}

}  // namespace detail

/// How a runtime embeds itself. The defaults: this process, rank threads, no device, no port, no signal.
struct RuntimeOptions {
  std::shared_ptr<Clock> clock = {};                ///< Null: the system's.
  LogSink log = {};                                 ///< Null: warnings and errors to stderr.
  LogLevel log_level = LogLevel::kWarning;
  /// Host memory played as devices, each with a budget of tensor bytes that is enforced (RES-5). Needs an
  /// `environment` that can (troupe/torch/environment.hpp); refused otherwise.
  std::vector<Device> simulated_devices = {};
  std::shared_ptr<RankEnvironment> environment = {};  ///< Around every rank; null: nothing. Workers have their own (WorkerMain).
  WorkerOptions workers = {};                       ///< Ranks in processes of their own.
#ifdef NDEBUG
  bool check_arguments = false;                     ///< Find arguments written to after the call (POOL-5).
#else
  bool check_arguments = true;
#endif
  Duration shutdown_deadline = std::chrono::seconds(5);  ///< What the destructor grants.

  /// Reads TROUPE_LOG (debug|info|warning|error) and TROUPE_CHECK_ARGUMENTS (0|1): the only place that
  /// looks at the environment (EMB). Fails with: kInvalidArgument naming variable and accepted values.
  [[nodiscard]] static Result<RuntimeOptions> from_env();
};

/// What a rank is doing: for people and for tests.
struct RankStatus {
  std::string verb;             ///< Empty: idle.
  Duration running = {};        ///< Since the verb began (SUP-2).
  std::int64_t live_bytes = 0;  ///< Tensor bytes, when the environment counts them.
  std::int64_t peak_bytes = 0;
};

struct PoolStatus {
  std::string name;
  std::int64_t accepted_messages = 0;  ///< Calls accepted and not complete.
  std::int64_t accepted_bytes = 0;
  std::string inconsistent;            ///< Why calls are refused, or empty.
  std::vector<RankStatus> ranks;
};

struct RuntimeStatus {
  std::vector<PoolStatus> pools;
  std::int64_t copied_bytes = 0;
  std::int64_t referenced_bytes = 0;
};

/// Everything Troupe runs in a process: pools, their threads, the transport, CAF. Two may live at once.
/// A handle: copies share one runtime; the last one shuts it down with `shutdown_deadline`.
/// Thread: any.
class Runtime {
 public:
  /// Fails with: kInvalidArgument, kUnavailable.
  [[nodiscard]] static Result<Runtime> create(RuntimeOptions options = {});

  /// Starts one T per rank of `options.mesh`, each built on its own thread from `args` (with the Rank& first
  /// where the constructor takes one). Returns before the constructors have ended: see Pool::ready().
  /// Fails with: kInvalidArgument (mesh, duplicate name), kInfeasible, kResourcesBusy, kClosed.
  template <class T, class... Args>
    requires(std::is_constructible_v<T, Rank&, const Args&...> || std::is_constructible_v<T, const Args&...>)
  [[nodiscard]] Result<Pool<T>> pool(PoolOptions options, Args... args) const {
    if (options.name.empty()) options.name = detail::class_name<T>();
    auto core = detail::make_pool(core_, std::move(options), detail::pool_class<T>(std::move(args)...));
    if (!core) return fail(std::move(core.error()));
    return Pool<T>(std::move(*core));
  }

  /// Makes a value that verbs can take by Ref.
  template <PayloadType T>
  [[nodiscard]] Ref<T> put(T value) const {
    return Ref<T>(std::make_shared<detail::ValueCall<T>>(clock(), std::move(value)), 0);
  }

  [[nodiscard]] RuntimeStatus status() const;
  [[nodiscard]] Clock& clock() const;
  [[nodiscard]] const transport::Context& transport() const;
  [[nodiscard]] const RuntimeOptions& options() const;

  /// Refuses new work, finishes or fails the rest, joins every thread (SUP-8). Idempotent.
  /// Fails with: kTimeout, naming each rank still in user code and its verb; those threads are left.
  [[nodiscard]] Result<void> shutdown(Duration deadline) const;

  [[nodiscard]] const std::shared_ptr<detail::RuntimeCore>& core() const noexcept { return core_; }

 private:
  explicit Runtime(std::shared_ptr<detail::RuntimeCore> core) : core_(std::move(core)) {}
  std::shared_ptr<detail::RuntimeCore> core_;
};

}  // namespace troupe
