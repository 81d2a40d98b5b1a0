#include "caf_front.hpp"

#include <map>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "caf_actors.hpp"
#include "runtime_core.hpp"

namespace troupe::detail {
namespace {

/// Hands calls from actors to the pool in the sender's own thread, and answers from the thread that completes
/// the call: a request costs two thread changes, to the rank and back, and no scheduler. No behaviour and no
/// state, so that any number of senders may enter at once (what caf::actor_pool does too).
class Front final : public caf::monitorable_actor {
 public:
  Front(caf::actor_config& config, std::shared_ptr<PoolCore> pool) : caf::monitorable_actor(config), pool_(std::move(pool)) {}
  const char* name() const override { return "troupe.front"; }
  void on_destroy() override {
    if (!is_destroyed()) cleanup(caf::exit_reason::unreachable, nullptr);
  }
  [[nodiscard]] bool is_destroyed() const { return getf(is_cleaned_up_flag); }

  using caf::abstract_actor::enqueue;
  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit* host) override {
    auto& content = what->content();
    if (content.match_elements<caf::exit_msg>()) {
      cleanup(std::move(content.get_mutable_as<caf::exit_msg>(0).reason), host);
      return;
    }
    if (is_destroyed() || !content.match_elements<SubmitAtom, CafCall>()) return bounce(what);
    submit(std::move(what->sender), what->mid, content.get_as<CafCall>(1));
  }

 private:
  void submit(caf::strong_actor_ptr sender, caf::message_id mid, CafCall request) {
    const auto answer = [sender = std::move(sender), mid, request] {
      if (sender && mid.is_request()) sender->enqueue(nullptr, mid.response_id(), caf::make_message(request), nullptr);
    };
    // registered first: a refusal completes inside submit()
    const bool waits = request.call->add_done(answer, true);
    pool_->submit(request.call, request.only_rank);
    if (!waits) answer();
  }

  const std::shared_ptr<PoolCore> pool_;
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
    if (found == fronts_.end()) found = fronts_.emplace(pool.get(), make_front(pool)).first;
    return found->second;
  }
  caf::actor_system& system() { return *system_; }

 private:
  PoolActor make_front(const std::shared_ptr<PoolCore>& pool) {
    caf::actor_config config;
    return caf::make_actor<Front, PoolActor>(system_->next_actor_id(), system_->node(), system_.get(), config, pool);
  }

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
