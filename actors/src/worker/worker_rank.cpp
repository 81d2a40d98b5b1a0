#include "worker_rank.hpp"

#include <utility>

#include <troupe/actors/wire_table.hpp>
#include <troupe/base/text.hpp>

namespace troupe::detail {
namespace {

Error named(Error error, const RankState& state) {
  if (error.origin.pool.empty()) error.origin = {.pool = state.pool.options.name, .rank = state.index};
  return error;
}

}  // namespace

WorkerRank::WorkerRank(std::shared_ptr<PoolHome> home, int rank, std::shared_ptr<RankEnvironment> environment)
    : home_(std::move(home)), environment_(std::move(environment)), state_(*home_, rank), rank_(state_), changed_(home_->services->clock()) {
  thread_ = Thread(home_->services->clock(), text(home_->options.name, ".", rank), [this] { loop(); });
}

WorkerRank::~WorkerRank() {
  if (thread_.joinable()) thread_.join();
}

void WorkerRank::post(Job job) {
  const std::lock_guard lock(mutex_);
  jobs_.push_back(std::move(job));
  changed_.notify_all();
}

void WorkerRank::loop() {
  set_current_rank(&state_);
  for (;;) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      (void)changed_.wait(lock, Deadline::never(), [this] { return !jobs_.empty(); });
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    if (!job) break;
    job();
  }
  set_current_rank(nullptr);
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

void WorkerRank::make(std::uint64_t class_id, std::uint64_t generation, std::vector<std::byte> arguments, Answer answer) {
  post([this, class_id, generation, arguments = std::move(arguments), answer = std::move(answer)] {
    try {
      clear();
      const WireClass made = or_throw(find_wire_class(class_id));
      if (environment_) scope_ = environment_->enter(rank_);
      state_.groups_allowed = true;
      state_.generation = generation;
      WireReader from(arguments);
      object_ = made.make(rank_, from);
    } catch (...) {
      return answer(fail(named(error_from_current_exception(), state_)));
    }
    answer(std::vector<std::byte>{});
  });
}

void WorkerRank::run(const RunTicket& ticket, std::vector<std::byte> arguments, Answer answer) {
  post([this, ticket, arguments = std::move(arguments), answer = std::move(answer)] { execute(ticket, arguments, answer); });
}

void WorkerRank::execute(const RunTicket& ticket, const std::vector<std::byte>& arguments, const Answer& answer) {
  std::vector<std::byte> value;
  try {
    const WireVerb verb = or_throw(find_wire_verb(ticket.verb));
    if (!object_ || verb.run == nullptr) throw Exception(Error{.code = Errc::kStale, .message = text(verb.name, ": this worker has no object for it")});
    state_.ticket = ticket.ticket;
    state_.generation = ticket.generation;
    state_.groups_allowed = ticket.has_groups;
    WireReader from(arguments);
    const WireValue made = verb.run(object_.get(), from);
    WireWriter to;
    if (made.write != nullptr) made.write(to, made.value.get());
    if (!to.tensors().empty()) throw Exception(Error{.code = Errc::kUnavailable, .message = text(verb.name, ": tensors do not travel from worker processes in this version")});
    value = std::move(to.bytes());
  } catch (...) {
    return answer(fail(named(error_from_current_exception(), state_)));
  }
  answer(std::move(value));
}

void WorkerRank::destroy(Answer answer) {
  post([this, answer = std::move(answer)] {
    clear();
    answer(std::vector<std::byte>{});
  });
  post(nullptr);
}

void WorkerRank::clear() {
  object_ = nullptr;
  state_.attachments.clear();
  state_.groups.clear();
  scope_ = nullptr;   // on this thread: it restores thread-local modes
}

bool WorkerRank::ended() {
  const std::lock_guard lock(mutex_);
  return ended_;
}

bool WorkerRank::join(Deadline until) {
  std::unique_lock lock(mutex_);
  if (changed_.wait(lock, until, [this] { return ended_; })) return true;
  thread_.leave();
  return false;
}

}  // namespace troupe::detail
