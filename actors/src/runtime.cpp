#include <troupe/actors/runtime.hpp>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include <unistd.h>

#include <troupe/base/text.hpp>
#include "runtime_core.hpp"
#include "worker/remote_host.hpp"

namespace troupe {
namespace detail {
namespace {

Cluster this_machine(const RuntimeOptions& options) {
  Node node;
  node.name = "local";
  node.cpus = std::max(1U, std::thread::hardware_concurrency());
  node.memory_bytes = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  node.devices = options.simulated_devices;
  return Cluster{{std::move(node)}};
}

std::shared_ptr<Services> make_services(const RuntimeOptions& options) {
  auto services = std::make_shared<Services>();
  auto clock = options.clock ? options.clock : system_clock();
  services->transport.clock = clock;
  services->transport.executor = std::make_shared<Executor>(clock);
  services->transport.log = std::make_shared<Log>(options.log, options.log_level);
  services->transport.counters = std::make_shared<transport::TransferCounters>();
  services->check_arguments = options.check_arguments;
  return services;
}

}  // namespace

RuntimeCore::RuntimeCore(RuntimeOptions o)
    : options(std::move(o)), services(make_services(options)), executor_(services->transport.executor), cluster_(this_machine(options)) {}

RuntimeCore::~RuntimeCore() {
  if (auto ended = shutdown(options.shutdown_deadline); !ended) services->transport.log->warn(ended.error().describe());
}

/// Joins pools whose ranks have ended: their reservation is free again. Those that close are given `patience`.
void RuntimeCore::reap(Duration patience) {
  const Deadline moment = services->clock().after(patience);
  std::erase_if(pools_, [moment](const auto& pool) {
    if (!pool->ended() && !(pool->closing() && pool->wait_ended(moment))) return false;
    (void)pool->join(Deadline::at(TimePoint{}));
    return true;
  });
}

Result<Placement> RuntimeCore::place_pool(const PoolOptions& wanted) {
  PlacementRequest request;
  request.name = wanted.name;
  request.ranks = wanted.mesh.size();
  request.per_rank = wanted.per_rank;
  std::vector<Placement> taken;
  for (const auto& pool : pools_) {
    taken.push_back(pool->placement);
    if (pool->options.name == wanted.share_devices_with) request.share_devices_with = pool->placement;
  }
  if (!wanted.share_devices_with.empty() && !request.share_devices_with) {
    return fail(Errc::kInvalidArgument, text("pool ", wanted.name, ": share_devices_with names '", wanted.share_devices_with, "', which is no pool of this runtime"));
  }
  return place(request, cluster_, taken);
}

Result<std::shared_ptr<PoolCore>> RuntimeCore::make_pool(PoolOptions wanted, PoolClass made) {
  if (auto ok = wanted.mesh.check(); !ok) return fail(std::move(ok.error()));
  if (wanted.limit_messages < 1 || wanted.limit_bytes < 1) return fail(Errc::kInvalidArgument, text("pool ", wanted.name, ": limits must be >= 1"));
  if (wanted.queue_deadline <= Duration::zero() || wanted.collective_deadline <= Duration::zero()) {
    return fail(Errc::kInvalidArgument, text("pool ", wanted.name, ": deadlines must be > 0"));
  }
  if (!wanted.environment) wanted.environment = options.environment;
  std::lock_guard lock(mutex_);
  if (closed_) return fail(Errc::kClosed, "the runtime was shut down");
  reap(std::chrono::seconds(1));   // whoever closes a pool and makes the next expects room
  for (const auto& pool : pools_) {
    if (pool->options.name == wanted.name && !pool->closing()) return fail(Errc::kInvalidArgument, text("a pool named '", wanted.name, "' exists in this runtime; names must differ"));
  }
  auto placement = place_pool(wanted);
  if (!placement) return fail(std::move(placement.error()));
  std::shared_ptr<RankHosts> hosts;
  if (workers_) {
    auto remote = remote_hosts(workers_, next_pool_++, wanted, std::move(made));
    if (!remote) return fail(std::move(remote.error()));
    hosts = std::move(*remote);
    wanted.environment = nullptr;   // the workers' ranks have theirs
  } else {
    hosts = local_hosts(std::move(made.make));
  }
  auto pool = std::make_shared<PoolCore>(services, std::move(wanted), std::move(*placement), std::move(hosts));
  pools_.push_back(pool);
  pool->start();
  return pool;
}

Result<void> RuntimeCore::start() {
  if (options.workers.count == 0) return {};
  auto workers = WorkerSet::create(services, options.workers);
  if (!workers) return fail(std::move(workers.error()));
  workers_ = std::move(*workers);
  return {};
}

Result<void> RuntimeCore::shutdown(Duration deadline) {
  std::vector<std::shared_ptr<PoolCore>> pools;
  std::shared_ptr<CafWorld> world;
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    pools.swap(pools_);
    world.swap(caf_);
  }
  const Deadline until = services->clock().after(deadline);
  for (const auto& pool : pools) pool->close();
  std::vector<std::string> stuck;
  for (const auto& pool : pools) {
    for (auto& line : pool->join(until)) stuck.push_back(std::move(line));
  }
  if (world) world->stop(until);
  if (workers_) {
    if (auto ended = workers_->stop(until); !ended) stuck.push_back(ended.error().message);
  }
  executor_->stop();
  if (stuck.empty()) return {};
  std::string all;
  for (const auto& line : stuck) all += (all.empty() ? "" : "; ") + line;
  return fail(Errc::kTimeout, text("shutdown left ranks in user code past its deadline: ", all));
}

RuntimeStatus RuntimeCore::status() {
  RuntimeStatus out;
  std::lock_guard lock(mutex_);
  reap(Duration::zero());
  for (const auto& pool : pools_) out.pools.push_back(pool->status());
  out.copied_bytes = services->transport.counters->copied_bytes;
  out.referenced_bytes = services->transport.counters->referenced_bytes;
  return out;
}

Result<std::shared_ptr<CafWorld>> RuntimeCore::caf() {
  std::lock_guard lock(mutex_);
  if (closed_) return fail(Errc::kClosed, "the runtime was shut down");
  if (!caf_) {
    auto made = CafWorld::create(services);
    if (!made) return fail(std::move(made.error()));
    caf_ = std::move(*made);
  }
  return caf_;
}

Result<std::shared_ptr<PoolCore>> make_pool(const std::shared_ptr<RuntimeCore>& runtime, PoolOptions options, PoolClass made) {
  return runtime->make_pool(std::move(options), std::move(made));
}

}  // namespace detail

Result<RuntimeOptions> RuntimeOptions::from_env() {
  RuntimeOptions out;
  if (const char* level = std::getenv("TROUPE_LOG")) {
    const std::string_view name(level);
    constexpr std::string_view kNames[] = {"debug", "info", "warning", "error"};
    const auto* found = std::ranges::find(kNames, name);
    if (found == std::end(kNames)) return fail(Errc::kInvalidArgument, text("TROUPE_LOG is '", name, "'; accepted: debug, info, warning, error"));
    out.log_level = static_cast<LogLevel>(found - std::begin(kNames));
  }
  if (const char* check = std::getenv("TROUPE_CHECK_ARGUMENTS")) {
    const std::string_view value(check);
    if (value != "0" && value != "1") return fail(Errc::kInvalidArgument, text("TROUPE_CHECK_ARGUMENTS is '", value, "'; accepted: 0, 1"));
    out.check_arguments = value == "1";
  }
  return out;
}

Result<Runtime> Runtime::create(RuntimeOptions options) {
  if (!options.simulated_devices.empty() && !options.environment) {
    return fail(Errc::kUnavailable, "simulated_devices need an environment that enforces their budgets: set RuntimeOptions::environment = "
                                    "torch_environment({.track_memory = true}) from troupe/stage/environment.hpp");
  }
  auto core = std::make_shared<detail::RuntimeCore>(std::move(options));
  if (auto started = core->start(); !started) return fail(std::move(started.error()));
  return Runtime(std::move(core));
}

RuntimeStatus Runtime::status() const { return core_->status(); }
Clock& Runtime::clock() const { return core_->services->clock(); }
const transport::Context& Runtime::transport() const { return core_->services->transport; }
const RuntimeOptions& Runtime::options() const { return core_->options; }
Result<void> Runtime::shutdown(Duration deadline) const { return core_->shutdown(deadline); }

}  // namespace troupe
