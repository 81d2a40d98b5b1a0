#include <troupe/actors/worker.hpp>

#include <charconv>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include <troupe/actors/wire_table.hpp>
#include <troupe/base/text.hpp>
#include "link.hpp"
#include "process/spawn.hpp"
#include "process/worker_setup.hpp"
#include "worker_rank.hpp"

namespace troupe {
namespace detail {
namespace {

constexpr std::string_view kFlag = "--troupe-worker=";
constexpr Duration kUserCodePatience = std::chrono::seconds(2);

std::shared_ptr<Services> worker_services(const LogSink& log) {
  auto services = std::make_shared<Services>();
  services->transport.clock = system_clock();
  services->transport.executor = std::make_shared<Executor>(services->transport.clock);
  services->transport.log = std::make_shared<Log>(log, LogLevel::kWarning);
  services->transport.counters = std::make_shared<transport::TransferCounters>();
  return services;
}

/// Everything of a worker process: requests arrive on the link's thread and go to ranks.
class WorkerProcess {
 public:
  WorkerProcess(Descriptor socket, const WorkerMain& options)
      : services_(worker_services(options.log)), environment_(options.environment), ended_(services_->clock()), link_(services_->clock(), std::move(socket), "the host") {}

  int run() {
    link_.start([this](std::span<const std::byte> frame) { on_frame(frame); },
                [this](const Error&) {
                  const std::lock_guard lock(mutex_);
                  is_over_ = true;
                  ended_.notify_all();
                });
    WireWriter hello;
    hello.number(Frame::kHello);
    hello.number(kProtocolVersion);
    hello.number(wire_table_hash());
    (void)link_.send(hello.bytes());
    {
      std::unique_lock lock(mutex_);
      (void)ended_.wait(lock, Deadline::never(), [this] { return is_over_; });
    }
    return stop();
  }

 private:
  using Key = std::pair<std::uint64_t, int>;

  void on_frame(std::span<const std::byte> frame) {
    WireReader from(frame);
    const auto kind = from.number<Frame>();
    const auto number = from.number<std::uint64_t>();
    switch (kind) {
      case Frame::kPing: return ping();
      case Frame::kMake: return make(number, from);
      case Frame::kRun: return start_run(number, from);
      case Frame::kDestroy: return destroy(number, from);
      case Frame::kEndGeneration: return end_generation(from);
      case Frame::kStop: return request_stop(from.number<std::uint64_t>());
      default: throw Exception(Error{.code = Errc::kBadData, .message = text("a frame of kind ", static_cast<int>(kind))});
    }
  }

  void ping() {
    WireWriter to;
    to.number(Frame::kPing);
    (void)link_.send(to.bytes());
  }

  WorkerRank::Answer answer(std::uint64_t number) {
    return [this, number](Result<std::vector<std::byte>> result) {
      WireWriter to = written(number, result);
      if (to.bytes().size() > kLargestFrame) {
        to = written(number, fail(Errc::kLimit, text("a result of ", result->size(), " bytes: ", kLargestFrame, " is the most that travels from a worker in this version")));
      }
      (void)link_.send(to.bytes());
    };
  }

  static WireWriter written(std::uint64_t number, const Result<std::vector<std::byte>>& result) {
    WireWriter to;
    to.number(Frame::kAnswer);
    to.number(number);
    to.number(result.has_value());
    if (result) {
      to.raw(result->data(), result->size());
    } else {
      write_error(to, result.error());
    }
    return to;
  }

  static std::vector<std::byte> rest(WireReader& from) {
    const auto bytes = from.take(from.left());
    return {bytes.begin(), bytes.end()};
  }

  void make(std::uint64_t number, WireReader& from) {
    const auto ticket = Payload<PoolTicket>::read(from);
    const int index = from.number<int>();
    const auto generation = from.number<std::uint64_t>();
    if (ticket.axes.size() != ticket.sizes.size() || index < 0 || static_cast<std::size_t>(index) >= ticket.workers.size()) {
      throw Exception(Error{.code = Errc::kBadData, .message = text("rank ", index, " of pool ", ticket.name)});
    }
    const std::lock_guard lock(mutex_);
    auto& rank = ranks_[{ticket.id, index}];
    if (!rank) rank = std::make_unique<WorkerRank>(home(ticket, index), index, environment_);
    rank->make(ticket.class_id, generation, rest(from), answer(number));
  }

  std::shared_ptr<PoolHome> home(const PoolTicket& ticket, int index) {
    auto& found = homes_[ticket.id];
    if (auto alive = found.lock()) return alive;
    PoolOptions options{.name = ticket.name, .collective_deadline = Duration(ticket.collective_deadline)};
    std::vector<Axis> axes;
    for (std::size_t i = 0; i < ticket.axes.size(); ++i) axes.push_back({ticket.axes[i], ticket.sizes[i]});
    options.mesh = Mesh(std::move(axes));
    if (!options.mesh.check() || static_cast<std::size_t>(options.mesh.size()) != ticket.workers.size()) {
      throw Exception(Error{.code = Errc::kBadData, .message = text("the mesh of pool ", ticket.name)});
    }
    Placement placement;
    placement.ranks.resize(ticket.workers.size());
    auto made = std::make_shared<PoolHome>(services_, std::move(options), std::move(placement));
    made->workers = ticket.workers;
    made->worker = ticket.workers[static_cast<std::size_t>(index)];
    found = made;
    return made;
  }

  void start_run(std::uint64_t number, WireReader& from) {
    const auto ticket = Payload<RunTicket>::read(from);
    const std::lock_guard lock(mutex_);
    const auto found = ranks_.find({ticket.pool, ticket.rank});
    if (found == ranks_.end()) return answer(number)(fail(Errc::kStale, text("this worker has no rank ", ticket.rank, " of pool ", ticket.pool)));
    found->second->run(ticket, rest(from), answer(number));
  }

  void destroy(std::uint64_t number, WireReader& from) {
    const auto pool = from.number<std::uint64_t>();
    const Key key{pool, from.number<int>()};
    const std::lock_guard lock(mutex_);
    reap();
    const auto found = ranks_.find(key);
    if (found == ranks_.end()) return answer(number)(std::vector<std::byte>{});
    found->second->destroy(answer(number));
    leaving_.push_back(std::move(found->second));   // its thread still runs
    ranks_.erase(found);
  }

  void reap() {
    std::erase_if(leaving_, [](const auto& rank) { return rank->ended(); });
  }

  void end_generation(WireReader& from) {
    const auto pool = from.number<std::uint64_t>();
    const auto generation = from.number<std::uint64_t>();
    const Error why = read_error(from);
    std::shared_ptr<PoolHome> home;
    {
      const std::lock_guard lock(mutex_);
      home = homes_[pool].lock();
    }
    if (home) home->groups.abort(generation, why);
  }

  void request_stop(std::uint64_t pool) {
    const std::lock_guard lock(mutex_);
    for (auto& [key, rank] : ranks_) {
      if (key.first == pool) rank->request_stop();
    }
  }

  /// The host is done, or gone: nobody reads answers any more.
  int stop() {
    const Deadline until = services_->clock().after(kUserCodePatience);
    std::unique_lock lock(mutex_);
    for (auto& [key, rank] : ranks_) {
      rank->request_stop();
      rank->destroy([](const auto&) {});
      leaving_.push_back(std::move(rank));
    }
    ranks_.clear();
    for (auto& [id, home] : homes_) {
      if (const auto alive = home.lock()) alive->groups.abort(~std::uint64_t{0}, {Errc::kPeerLost, "the host has ended"});
    }
    bool all = true;
    for (auto& rank : leaving_) all = rank->join(until) && all;
    if (!all) std::_Exit(EXIT_FAILURE);   // user code that does not return: static destructors would run under it
    leaving_.clear();
    lock.unlock();
    services_->transport.executor->stop();
    return EXIT_SUCCESS;
  }

  const std::shared_ptr<Services> services_;
  const std::shared_ptr<RankEnvironment> environment_;
  std::mutex mutex_;
  Condition ended_;
  bool is_over_ = false;
  std::map<std::uint64_t, std::weak_ptr<PoolHome>> homes_;
  std::map<Key, std::unique_ptr<WorkerRank>> ranks_;
  std::vector<std::unique_ptr<WorkerRank>> leaving_;
  Link link_;   ///< Last: its thread uses the others.
};

int work(std::string_view parent, const WorkerMain& options) {
  Log log(options.log, LogLevel::kWarning);
  pid_t expected = 0;
  const auto [end, error] = std::from_chars(parent.data(), parent.data() + parent.size(), expected);
  if (error != std::errc() || end != parent.data() + parent.size()) {
    log.write(LogLevel::kError, text(kFlag, " wants the pid of its host; a Runtime starts workers, people do not"));
    return EXIT_FAILURE;
  }
  if (auto ok = worker_process_setup(expected); !ok) {
    log.write(LogLevel::kError, ok.error().describe());
    return EXIT_FAILURE;
  }
  return WorkerProcess(Descriptor(kFirstDescriptor), options).run();
}

}  // namespace
}  // namespace detail

std::optional<int> worker_main(int argc, char** argv, const WorkerMain& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument(argv[i]);
    if (argument.starts_with(detail::kFlag)) return detail::work(argument.substr(detail::kFlag.size()), options);
  }
  return std::nullopt;
}

}  // namespace troupe
