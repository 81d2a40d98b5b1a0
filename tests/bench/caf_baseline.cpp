#include "caf_baseline.hpp"

#include <future>

#include <caf/all.hpp>
#include <caf/io/all.hpp>

#include "rows.hpp"

namespace bench {
namespace {

using Adder = caf::typed_actor<caf::replies_to<int>::with<int>>;

class AdderActor final : public Adder::base {
 public:
  explicit AdderActor(caf::actor_config& config) : Adder::base(config) {}
  behavior_type make_behavior() override {
    return {[this](int x) { return value_ += x; }};
  }

 private:
  int value_ = 0;
};

/// Keeps `window` requests in flight.
class Client final : public caf::event_based_actor {
 public:
  Client(caf::actor_config& config, Adder target, int count, int window, std::promise<void>* done)
      : caf::event_based_actor(config), target_(std::move(target)), left_(count), answers_(count), window_(window), done_(done) {}
  caf::behavior make_behavior() override {
    for (int i = 0; i < window_ && left_ > 0; ++i) send_one();
    return {[](const std::string&) {}};
  }

 private:
  void send_one() {
    --left_;
    request(target_, caf::infinite, 1).then([this](int) {
      if (left_ > 0) send_one();
      if (--answers_ == 0) {
        done_->set_value();
        quit();
      }
    });
  }
  Adder target_;
  int left_;
  int answers_;
  int window_;
  std::promise<void>* done_;
};

}  // namespace

struct CafBaseline::State {
  State() {
    config.set("scheduler.policy", caf::atom("sharing"));
    config.set("scheduler.max-threads", 2);
    config.set("scheduler.max-throughput", 100);
    system = std::make_unique<caf::actor_system>(config);
    detached = system->spawn<AdderActor, caf::detached>();
    scheduled = system->spawn<AdderActor>();
  }
  ~State() {
    for (auto& actor : {detached, scheduled}) caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
    detached = nullptr;
    scheduled = nullptr;
  }
  caf::actor_system_config config;
  std::unique_ptr<caf::actor_system> system;
  Adder detached, scheduled;
};

CafBaseline::CafBaseline() : state_(std::make_unique<State>()) {}
CafBaseline::~CafBaseline() = default;

double CafBaseline::detached_round_trip(int count) {
  caf::scoped_actor self{*state_->system};
  const double start = now();
  for (int i = 0; i < count; ++i) self->request(state_->detached, caf::infinite, 1).receive([](int) {}, [](caf::error&) {});
  return (now() - start) / count;
}

double CafBaseline::pipelined(int count, int window) {
  std::promise<void> done;
  const double start = now();
  state_->system->spawn<Client>(state_->scheduled, count, window, &done);
  done.get_future().wait();
  return count / (now() - start);
}

namespace {

struct IoConfig : caf::actor_system_config {
  IoConfig() {
    load<caf::io::middleman>();
    add_message_type<Adder>("adder");
    set("scheduler.policy", caf::atom("sharing"));
    set("scheduler.max-threads", 2);
    set("scheduler.max-throughput", 100);
  }
};

}  // namespace

struct CafAdder::State {
  IoConfig config;
  caf::actor_system system{config};
  Adder adder = system.spawn<AdderActor, caf::detached>();
  std::uint16_t port = *system.middleman().publish(adder, 0, "127.0.0.1");
  ~State() {
    caf::anon_send_exit(adder, caf::exit_reason::user_shutdown);
    adder = nullptr;
  }
};
CafAdder::CafAdder() : state_(std::make_unique<State>()) {}
CafAdder::~CafAdder() = default;
int CafAdder::port() const { return state_->port; }

struct CafRemote::State {
  explicit State(int port) : adder(*system.middleman().remote_actor<Adder>("127.0.0.1", static_cast<std::uint16_t>(port))) {}
  IoConfig config;
  caf::actor_system system{config};
  Adder adder;
};
CafRemote::CafRemote(int port) : state_(std::make_unique<State>(port)) {}
CafRemote::~CafRemote() = default;
double CafRemote::round_trip(int count) {
  caf::scoped_actor self{state_->system};
  const double start = now();
  for (int i = 0; i < count; ++i) self->request(state_->adder, caf::infinite, 1).receive([](int) {}, [](caf::error&) {});
  return (now() - start) / count;
}

}  // namespace bench
