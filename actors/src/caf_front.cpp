#include "caf_front.hpp"

#include <unordered_map>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "caf_actors.hpp"
#include "runtime_core.hpp"

namespace troupe::detail {
namespace {

/// Hands calls from actors to the pool and delivers their completion. Rank threads never touch a promise:
/// they send it back here.
class Front final : public PoolActor::base {
 public:
  Front(caf::actor_config& config, std::shared_ptr<PoolCore> pool) : PoolActor::base(config), pool_(std::move(pool)) {}
  const char* name() const override { return "troupe.front"; }

  behavior_type make_behavior() override {
    return {[this](SubmitAtom, CafCall& request) -> caf::typed_response_promise<CafCall> { return submit(request); },
            [this](DoneAtom, std::uint64_t id) {
              auto found = pending_.find(id);
              if (found == pending_.end()) return;
              found->second.promise.deliver(std::move(found->second.request));
              pending_.erase(found);
            }};
  }

  void on_exit() override {
    pending_.clear();
    pool_ = nullptr;
  }

 private:
  struct Waiting {
    caf::typed_response_promise<CafCall> promise;
    CafCall request;
  };

  caf::typed_response_promise<CafCall> submit(CafCall& request) {
    auto promise = make_response_promise<CafCall>();
    const std::uint64_t id = next_++;
    pending_.emplace(id, Waiting{promise, request});
    const PoolActor self(this);
    // registered first: a refusal completes inside submit()
    const bool waits = request.call->add_done([self, id] { caf::anon_send(self, DoneAtom::value, id); }, true);
    pool_->submit(request.call, request.only_rank);
    if (!waits) caf::anon_send(self, DoneAtom::value, id);
    return promise;
  }

  std::shared_ptr<PoolCore> pool_;
  std::unordered_map<std::uint64_t, Waiting> pending_;
  std::uint64_t next_ = 0;
};

class World final : public CafWorld {
 public:
  explicit World(std::shared_ptr<Services> services) : services_(std::move(services)) {
    config_.set("scheduler.policy", caf::atom("sharing"));
    config_.set("scheduler.max-threads", 2);
    config_.set("scheduler.max-throughput", 100);
    system_ = std::make_unique<caf::actor_system>(config_);
  }
  ~World() override { stop(Deadline::at(TimePoint{})); }

  void stop(Deadline /*until*/) override {
    std::lock_guard lock(mutex_);
    for (auto& [pool, front] : fronts_) caf::anon_send_exit(front, caf::exit_reason::kill);
    fronts_.clear();  // a handle that outlives its system hangs it
    system_ = nullptr;
  }

  PoolActor front(const std::shared_ptr<PoolCore>& pool) {
    std::lock_guard lock(mutex_);
    auto found = fronts_.find(pool.get());
    if (found == fronts_.end()) found = fronts_.emplace(pool.get(), system_->spawn<Front>(pool)).first;
    return found->second;
  }
  caf::actor_system& system() { return *system_; }

 private:
  std::shared_ptr<Services> services_;
  std::mutex mutex_;
  caf::actor_system_config config_;
  std::unique_ptr<caf::actor_system> system_;
  std::map<PoolCore*, PoolActor> fronts_;
};

/// CAF ends the process when pipe() fails: look for room first (EMB).
bool has_descriptors() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  close(ends[0]);
  close(ends[1]);
  return true;
}

}  // namespace

Result<std::shared_ptr<CafWorld>> CafWorld::create(std::shared_ptr<Services> services) {
  if (!has_descriptors()) return fail(Errc::kUnavailable, "the process has no file descriptors left for the actor system; raise RLIMIT_NOFILE");
  return std::shared_ptr<CafWorld>(std::make_shared<World>(std::move(services)));
}

Result<std::shared_ptr<CafWorld>> caf_world(const std::shared_ptr<RuntimeCore>& runtime) { return runtime->caf(); }
PoolActor front_of(CafWorld& world, const std::shared_ptr<PoolCore>& pool) { return static_cast<World&>(world).front(pool); }
caf::actor_system& system_of(CafWorld& world) { return static_cast<World&>(world).system(); }

}  // namespace troupe::detail
