#include "pool_core.hpp"

#include <algorithm>
#include <utility>

#include <troupe/base/text.hpp>
#include "rank_loop.hpp"

namespace troupe::detail {

Result<void> PoolHome::can_group(const std::vector<int>& members) const {
  const auto away = std::ranges::find_if(members, [this](int rank) { return !workers.empty() && workers[static_cast<std::size_t>(rank)] != worker; });
  if (away == members.end()) return {};
  return fail(Errc::kUnavailable, text("rank ", *away, " of pool ", options.name, " lives in worker ", workers[static_cast<std::size_t>(*away)],
                                       ": groups do not reach over processes in this version; give the pool a mesh that fits into one worker"), {.pool = options.name});
}

PoolCore::PoolCore(std::shared_ptr<Services> s, PoolOptions o, Placement p, std::shared_ptr<RankHosts> hosts)
    : PoolHome(std::move(s), std::move(o), std::move(p)),
      hosts_(std::move(hosts)),
      changed_(services->clock()),
      room_(services->clock()) {
  for (int rank = 0; rank < options.mesh.size(); ++rank) {
    slots_.push_back(std::make_unique<RankSlot>(*this, rank, services->clock(), hosts_->host(rank)));
  }
}

void PoolCore::start() {
  for (auto& slot : slots_) {
    // the thread owns the pool: one that shutdown leaves behind touches nothing freed (SUP-8)
    slot->thread = Thread(services->clock(), text(options.name, ".", slot->state.index),
                          [self = shared_from_this(), rank = slot->state.index] { RankLoop(*self, rank).run(); });
  }
}

/// Why a call can't be taken now, or nothing.
std::optional<Error> PoolCore::refusal(const CallPtr& call) const {
  if (closing_) return Error{.code = Errc::kClosed, .message = text("pool ", options.name, " is closed"), .origin = {.pool = options.name}};
  if (failed_) return caused_by(*failed_, failed_->code, text("pool ", options.name, " never started: a constructor failed"), {.pool = options.name});
  if (inconsistent_ && !call->verb.is_pure && call->only_rank != kRebuild) {
    return caused_by(*inconsistent_, Errc::kInconsistent,
                     text("pool ", options.name, " takes no ", call->verb.name, ": an earlier failure may have changed some ranks and not others; reset() it"),
                     {.pool = options.name});
  }
  return std::nullopt;
}

void PoolCore::submit(const CallPtr& call, int only_rank) {
  call->pool = shared_from_this();
  call->only_rank = only_rank;
  call->width = only_rank == kEveryRank || only_rank == kRebuild ? size() : 1;
  call->remaining.store(call->width, std::memory_order_relaxed);
  call->unfinished.store(call->width, std::memory_order_relaxed);
  // a reset() that went overdue in a queue would leave the old objects in a pool that takes calls again
  call->queue_deadline = only_rank == kRebuild ? Deadline::never() : services->clock().after(options.queue_deadline);
  ToRun to_run;
  {
    Lock lock(mutex_);
    std::optional<Error> why;
    if (only_rank >= size()) {
      why = Error{.code = Errc::kInvalidArgument, .message = text("rank ", only_rank, " of pool ", options.name, ": it has ", size()), .origin = origin(-1)};
    }
    if (!why) why = refusal(call);
    if (!why) why = admit(lock, call);
    if (why) {
      call->finish(std::make_shared<const Error>(std::move(*why)), to_run);
    } else {
      enqueue(call, only_rank);
    }
  }
  run_later(std::move(to_run));
}

/// POOL-1, POOL-6: ticket and all queues at once, under the one mutex.
void PoolCore::enqueue(const CallPtr& call, int only_rank) {
  call->ticket = next_ticket_++;
  if (only_rank == kRebuild) {  // calls from here on run on the new objects
    inconsistent_ = nullptr;
    reset_ticket_ = call->ticket;
  }
  if (only_rank == kFreeRank) {
    shared_.push_back(call);
    for (auto& slot : slots_) {
      if (slot->sleeping) return wake(*slot);
    }
    return;
  }
  for (auto& slot : slots_) {
    if (only_rank >= 0 && slot->state.index != only_rank) continue;
    slot->queue.push_back(call);
    wake(*slot);
  }
}

void PoolCore::wake(RankSlot& slot) {
  if (!slot.sleeping) return;
  slot.sleeping = false;
  slot.wake.notify_all();
}

void PoolCore::complete_with_error(const CallPtr& call, Error error) {
  call->pool = shared_from_this();
  ToRun to_run;
  call->finish(std::make_shared<const Error>(std::move(error)), to_run);
  run_later(std::move(to_run));
}

void PoolCore::run_later(ToRun to_run) {
  for (auto& done : to_run) {
    if (done.at_once || !services->transport.executor->post(done.run)) done.run();  // after shutdown nobody else runs it
  }
}

Result<void> PoolCore::ready(Duration timeout) {
  const Deadline until = services->clock().after(timeout);
  Lock lock(mutex_);
  const bool done = changed_.wait(lock, until, [this] { return failed_ || closing_ || constructed_ == size(); });
  if (failed_) return fail(*failed_);
  if (!done) return fail(Errc::kTimeout, text("pool ", options.name, ": ", size() - constructed_, " of ", size(), " constructors still run"), origin(-1));
  if (closing_) return fail(Errc::kClosed, text("pool ", options.name, " was closed while its constructors ran"), origin(-1));
  return {};
}

namespace {

class RebuildCall final : public CallBase {
 public:
  explicit RebuildCall(Clock& clock) : CallBase(clock) { verb.name = "reset"; }
  void dependencies(int, std::vector<CallPtr>&) const override {}
  void run(void*, Rank&, int) override {}
  void drop_arguments() noexcept override {}
  [[nodiscard]] std::string changed_argument() const override { return {}; }
};

}  // namespace

Result<void> PoolCore::reset(Duration timeout) {
  const auto call = std::make_shared<RebuildCall>(services->clock());
  ToRun to_run;
  {
    Lock lock(mutex_);
    fail_queued(Error{.code = Errc::kInconsistent, .message = text("pool ", options.name, " was reset before the call began"), .origin = origin(-1)}, false, to_run);
  }
  run_later(std::move(to_run));
  submit(call, kRebuild);
  return wait_for(*call, services->clock().after(timeout));
}

void PoolCore::close() {
  ToRun to_run;
  {
    Lock lock(mutex_);
    closing_ = true;
    fail_queued(Error{.code = Errc::kClosed, .message = text("pool ", options.name, " was closed before the call began"), .origin = origin(-1)}, false, to_run);
    for (auto& slot : slots_) {
      slot->state.stop.request_stop();
      if (slot->resolving) slot->resolving->poke();
      wake(*slot);
    }
    changed_.notify_all();
    room_.notify_all();
  }
  hosts_->stop();
  run_later(std::move(to_run));
}

bool PoolCore::ended() { return wait_ended(Deadline::at(TimePoint{})); }

bool PoolCore::closing() {
  Lock lock(mutex_);
  return closing_;
}

bool PoolCore::wait_ended(Deadline until) {
  Lock lock(mutex_);
  return changed_.wait(lock, until, [this] { return std::ranges::all_of(slots_, [](const auto& slot) { return slot->ended || slot->thread.is_current(); }); });
}

std::vector<std::string> PoolCore::join(Deadline until) {
  std::vector<std::string> stuck;
  (void)wait_ended(until);
  Lock lock(mutex_);
  for (auto& slot : slots_) {
    if (!slot->thread.joinable()) continue;
    if (slot->ended) {
      slot->thread.join();  // it has left its loop: at most the thread's own exit is waited for
      continue;
    }
    const auto since = std::chrono::duration<double>(services->clock().now() - slot->since).count();
    stuck.push_back(text("pool ", options.name, " rank ", slot->state.index, " in ", slot->running ? slot->running->verb.name : "its constructor", " since ", since, " s"));
    slot->thread.leave();
  }
  return stuck;
}

PoolStatus PoolCore::status() {
  PoolStatus out;
  Lock lock(mutex_);
  out.name = options.name;
  out.accepted_messages = accepted_messages_;
  out.accepted_bytes = accepted_bytes_;
  if (inconsistent_) out.inconsistent = inconsistent_->describe();
  for (const auto& slot : slots_) {
    RankStatus rank;
    if (slot->running) {
      rank.verb = slot->running->verb.name;
      rank.running = services->clock().now() - slot->since;
    }
    if (slot->scope) {
      rank.live_bytes = slot->scope->live_bytes();
      rank.peak_bytes = slot->scope->peak_bytes();
    }
    out.ranks.push_back(std::move(rank));
  }
  return out;
}

namespace {

/// What user handles share: the last one closes the pool; its threads end by themselves and the runtime
/// joins them later. An object of its own, since a deleter would live as long as the weak pointer to it.
struct Handle {
  explicit Handle(std::shared_ptr<PoolCore> p) : pool(std::move(p)) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { pool->close(); }
  std::shared_ptr<PoolCore> pool;
};

}  // namespace

std::shared_ptr<const void> PoolCore::handle() {
  Lock lock(mutex_);
  std::shared_ptr<const void> found = handle_.lock();
  if (!found) {
    found = std::make_shared<Handle>(shared_from_this());
    handle_ = found;
  }
  return found;
}

void submit(const std::shared_ptr<PoolCore>& pool, const std::shared_ptr<CallBase>& call, int only_rank) { pool->submit(call, only_rank); }
void complete_with_error(const std::shared_ptr<PoolCore>& pool, const std::shared_ptr<CallBase>& call, Error error) {
  pool->complete_with_error(call, std::move(error));
}
int pool_size(const PoolCore& pool) { return pool.size(); }
const PoolOptions& pool_options(const PoolCore& pool) { return pool.options; }
Clock& pool_clock(const PoolCore& pool) { return pool.services->clock(); }
bool pool_checks_arguments(const PoolCore& pool) { return pool.services->check_arguments; }
const Placement& pool_placement(const PoolCore& pool) { return pool.placement; }
Result<void> pool_ready(const std::shared_ptr<PoolCore>& pool, Duration timeout) { return pool->ready(timeout); }
Result<void> pool_reset(const std::shared_ptr<PoolCore>& pool, Duration timeout) { return pool->reset(timeout); }
void pool_close(const std::shared_ptr<PoolCore>& pool) { pool->close(); }
std::shared_ptr<const void> pool_handle(const std::shared_ptr<PoolCore>& pool) { return pool->handle(); }

}  // namespace troupe::detail
