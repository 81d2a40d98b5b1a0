#include "remote_host.hpp"

#include <set>
#include <utility>

#include <troupe/actors/wire_table.hpp>
#include <troupe/base/text.hpp>
#include "pool_core.hpp"

namespace troupe::detail {
namespace {

constexpr Duration kDestroyPatience = std::chrono::seconds(5);

/// What all ranks of one pool share.
struct RemotePool {
  std::shared_ptr<WorkerSet> set;
  PoolTicket ticket;
  PoolClass made;
};

class RemoteHost final : public RankHost {
 public:
  RemoteHost(std::shared_ptr<const RemotePool> pool, int rank) : pool_(std::move(pool)), rank_(rank) {}

  void construct(Rank& /*rank*/) override {
    worker_ = or_throw(pool_->set->living(pool_->ticket.workers[static_cast<std::size_t>(rank_)]));
    const auto fill = [this](WireWriter& to) {
      Payload<PoolTicket>::write(to, pool_->ticket);
      to.number(rank_);
      to.number(current_rank()->generation);   // of the groups that the constructor may need
      pool_->made.write_arguments(to);
    };
    (void)or_throw(worker_->ask(Frame::kMake, text("the constructor of ", pool_->made.name), fill, Deadline::never()));
  }

  void run(CallBase& call, Rank& rank) override {
    if (!worker_) throw Exception(Error{.code = Errc::kPeerLost, .message = text("rank ", rank_, " has no object: its worker was lost; reset the pool")});
    (void)or_throw(find_wire_verb(call.wire_id));
    WireWriter arguments;
    if (!call.write_arguments(rank_, arguments)) {
      throw Exception(Error{.code = Errc::kUnavailable, .message = text(call.verb.name, " can't run in a worker process: a parameter or its result has no wire form (Payload<T>::write and read)")});
    }
    if (!arguments.tensors().empty()) throw Exception(Error{.code = Errc::kUnavailable, .message = text(call.verb.name, ": tensors do not travel to worker processes in this version")});
    const auto fill = [&](WireWriter& to) {
      Payload<RunTicket>::write(to, {pool_->ticket.id, rank_, call.ticket, call.generation, call.only_rank == kEveryRank, call.wire_id});
      to.raw(arguments.bytes().data(), arguments.bytes().size());
    };
    const auto value = or_throw(worker_->ask(Frame::kRun, std::string(call.verb.name), fill, Deadline::never()));
    WireReader from(value);
    call.read_value(call.width == 1 ? 0 : rank.index(), from);
    from.finish();
  }

  void destroy() noexcept override {
    const auto worker = std::exchange(worker_, nullptr);
    if (!worker || worker->lost()) return;
    const auto fill = [this](WireWriter& to) { to.number(pool_->ticket.id), to.number(rank_); };
    (void)worker->ask(Frame::kDestroy, text("the destructor of ", pool_->made.name), fill, pool_->set->clock().after(kDestroyPatience));
  }

 private:
  const std::shared_ptr<const RemotePool> pool_;
  const int rank_;
  std::shared_ptr<Worker> worker_;   ///< Of its object: a later incarnation has none.
};

class RemoteHosts final : public RankHosts {
 public:
  explicit RemoteHosts(std::shared_ptr<const RemotePool> pool) : pool_(std::move(pool)) {}
  std::unique_ptr<RankHost> host(int rank) override { return std::make_unique<RemoteHost>(pool_, rank); }

  void end_generation(GroupTable& /*groups*/, std::uint64_t generation, const Error& why) override {
    tell_all(Frame::kEndGeneration, [&](WireWriter& to) {
      to.number(pool_->ticket.id);
      to.number(generation);
      write_error(to, why);
    });
  }
  void stop() override {
    tell_all(Frame::kStop, [&](WireWriter& to) { to.number(pool_->ticket.id); });
  }

 private:
  void tell_all(Frame kind, const Worker::Fill& fill) {
    const std::set<int> workers(pool_->ticket.workers.begin(), pool_->ticket.workers.end());
    for (const int index : workers) pool_->set->at(index)->tell(kind, fill);
  }

  const std::shared_ptr<const RemotePool> pool_;
};

}  // namespace

Result<std::shared_ptr<RankHosts>> remote_hosts(std::shared_ptr<WorkerSet> set, std::uint64_t id, const PoolOptions& options, PoolClass made) {
  if (!made.write_arguments) {
    return fail(Errc::kUnavailable, text("pool ", options.name, ": an argument of ", made.name, "'s constructor can't travel to a worker process: give its type troupe_fields, or Payload<T>::write and read"));
  }
  if (auto found = find_wire_class(made.wire_id); !found) return fail(std::move(found.error()));
  PoolTicket ticket{.id = id, .name = options.name, .collective_deadline = options.collective_deadline.count(), .class_id = made.wire_id};
  for (const Axis& axis : options.mesh.axes()) {
    ticket.axes.push_back(axis.name);
    ticket.sizes.push_back(axis.size);
  }
  const int ranks = options.mesh.size();
  for (int rank = 0; rank < ranks; ++rank) ticket.workers.push_back(static_cast<int>(std::int64_t{rank} * set->size() / ranks));
  return std::make_shared<RemoteHosts>(std::make_shared<const RemotePool>(RemotePool{std::move(set), std::move(ticket), std::move(made)}));
}

}  // namespace troupe::detail
