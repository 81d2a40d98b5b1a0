#include "rank_loop.hpp"

#include <utility>

#include <troupe/base/text.hpp>

namespace troupe::detail {

void RankLoop::run() {
  set_current_rank(&slot_.state);
  if (construct()) {
    CallPtr call;
    while ((call = next(call))) execute(call);
  }
  end();
  set_current_rank(nullptr);
}

bool RankLoop::construct() {
  slot_.since = pool_.services->clock().now();
  try {
    if (pool_.options.environment) {
      auto scope = std::shared_ptr<RankEnvironment::Scope>(pool_.options.environment->enter(rank_));
      PoolCore::Lock lock(pool_.mutex_);
      slot_.scope = std::move(scope);
    }
    slot_.host->construct(rank_);
  } catch (...) {
    Error error = error_from_current_exception();
    if (error.origin.pool.empty()) error.origin = pool_.origin(slot_.state.index);
    pool_.fail_pool(std::move(error));  // SUP-6
    return false;
  }
  PoolCore::Lock lock(pool_.mutex_);
  ++pool_.constructed_;
  pool_.changed_.notify_all();
  return !pool_.failed_;
}

/// Ends the accounting of the last call and takes the next, under one lock. Null: the pool closes.
CallPtr RankLoop::next(const CallPtr& done) {
  const bool last = done && done->remaining.fetch_sub(1, std::memory_order_acq_rel) == 1;
  if (last) done->drop_arguments();  // before the lock: destructors of arguments are user code (SUP-7)
  PoolCore::Lock lock(pool_.mutex_);
  if (done) {
    slot_.running = nullptr;
    slot_.state.done_ticket.store(done->ticket, std::memory_order_release);
    if (last) pool_.release(done);
  }
  for (;;) {
    if (pool_.closing_ && slot_.queue.empty()) return nullptr;
    if (pool_.failed_) return nullptr;
    auto* queue = &slot_.queue;
    if (!pool_.shared_.empty() && (queue->empty() || pool_.shared_.front()->ticket < queue->front()->ticket)) queue = &pool_.shared_;
    if (!queue->empty()) {
      CallPtr taken = std::move(queue->front());
      queue->pop_front();
      if (queue == &pool_.shared_) taken->taker.store(slot_.state.index, std::memory_order_release);
      slot_.running = taken;
      slot_.since = pool_.services->clock().now();
      return taken;
    }
    slot_.sleeping = true;
    (void)slot_.wake.wait(lock, Deadline::never(), [&] { return !slot_.sleeping; });
  }
}

void RankLoop::execute(const CallPtr& call) {
  if (call->complete()) return;
  if (call->only_rank == kRebuild) return rebuild(call);
  if (!resolve(call) || !begin(call)) return;
  invoke(call);
}

/// POOL-6: waits for the values its Refs name, at the head of the queue: they have older tickets.
bool RankLoop::resolve(const CallPtr& call) {
  dependencies_.clear();
  call->dependencies(slot_.state.index, dependencies_);
  for (const CallPtr& dependency : dependencies_) {
    if (!dependency) {
      pool_.fail_ticket(call, Error{.code = Errc::kInvalidArgument, .message = text(call->verb.name, " was given an empty Ref")}, slot_.state.index);
      return false;
    }
    if (!dependency->complete()) {
      if (auto entered = pool_.services->waits.enter(slot_.state, dependency); !entered) {
        pool_.fail_ticket(call, entered.error(), slot_.state.index);
        return false;
      }
      {
        PoolCore::Lock lock(pool_.mutex_);
        slot_.resolving = dependency;
      }
      const bool in_time = dependency->wait_unless(call->queue_deadline, *call);
      {
        PoolCore::Lock lock(pool_.mutex_);
        slot_.resolving = nullptr;
      }
      pool_.services->waits.leave(slot_.state);
      if (call->complete()) return false;
      if (!in_time) {
        pool_.fail_ticket(call, Error{.code = Errc::kTimeout, .message = text("an argument of ", call->verb.name, " (", dependency->verb.name, ") was not there within the queue deadline")}, slot_.state.index);
        return false;
      }
    }
    if (dependency->error()) {
      const Error& cause = *dependency->error();
      pool_.fail_ticket(call, caused_by(cause, cause.code, text("an argument of ", call->verb.name, " was not made: ", dependency->verb.name, " failed")), slot_.state.index);
      return false;
    }
  }
  dependencies_.clear();
  return true;
}

bool RankLoop::begin(const CallPtr& call) {
  RankState& state = slot_.state;
  state.ticket = call->ticket;
  state.groups_allowed = call->only_rank == kEveryRank;
  if (call->width == 1) {
    call->generation = state.generation;
    return !call->complete();
  }
  PoolCore::Lock lock(pool_.mutex_);
  if (call->complete()) return false;
  // reset() has a generation of its own: what fails before or after it does not take its constructors along
  if (call->generation == 0 && call->only_rank == kRebuild) call->generation = ++pool_.generation_, ++pool_.generation_;
  if (call->generation == 0) call->generation = pool_.generation_;
  state.generation = call->generation;
  return true;
}

void RankLoop::invoke(const CallPtr& call) {
  try {
    slot_.host->run(*call, rank_);
  } catch (...) {
    Error error = error_from_current_exception();
    if (error.origin.pool.empty()) error.origin = pool_.origin(slot_.state.index);
    return pool_.fail_ticket(call, std::move(error), slot_.state.index);
  }
  // the last rank that ran it well completes it; `unfinished` counts runs, `remaining` also skips
  if (call->unfinished.fetch_sub(1, std::memory_order_acq_rel) == 1) complete(call);
}

void RankLoop::complete(const CallPtr& call) {
  ErrorPtr error;
  if (call->only_rank == kRebuild) {
    const Error over{.code = Errc::kStale, .message = text("pool ", pool_.options.name, " was reset"), .origin = pool_.origin(-1)};
    for (const auto past : {call->generation - 1, call->generation}) pool_.hosts_->end_generation(pool_.groups, past, over);  // every rank is past them
  }
  if (call->check_arguments) {
    if (const std::string changed = call->changed_argument(); !changed.empty()) {  // POOL-5
      error = std::make_shared<const Error>(Error{.code = Errc::kInvalidArgument,
          .message = text(changed, " was written to after the call was made: pass a copy, or move it and let go"), .origin = pool_.origin(slot_.state.index), .maybe_executed = true});
    }
  }
  PoolCore::ToRun to_run;
  call->finish(std::move(error), to_run);
  pool_.run_later(std::move(to_run));
}

void RankLoop::rebuild(const CallPtr& call) {
  slot_.state.ticket = call->ticket;
  slot_.state.groups_allowed = true;
  if (!begin(call)) return;
  slot_.state.groups_allowed = true;
  try {
    slot_.host->destroy();
    slot_.state.attachments.clear();
    slot_.host->construct(rank_);
  } catch (...) {
    Error error = error_from_current_exception();
    if (error.origin.pool.empty()) error.origin = pool_.origin(slot_.state.index);
    pool_.fail_ticket(call, error, slot_.state.index);
    return pool_.fail_pool(std::move(error));
  }
  if (call->unfinished.fetch_sub(1, std::memory_order_acq_rel) == 1) complete(call);
}

void RankLoop::end() {
  slot_.host->destroy();
  slot_.state.attachments.clear();
  slot_.state.groups.clear();
  std::shared_ptr<RankEnvironment::Scope> scope;
  PoolCore::ToRun to_run;
  {
    PoolCore::Lock lock(pool_.mutex_);
    scope = std::move(slot_.scope);
    slot_.running = nullptr;
    const Error why = pool_.failed_ ? *pool_.failed_ : Error{.code = Errc::kClosed, .message = text("pool ", pool_.options.name, " was closed"), .origin = pool_.origin(-1)};
    pool_.fail_queued(why, false, to_run);
    for (const CallPtr& call : slot_.queue) {  // begun on other ranks, never to be finished here
      pool_.finish(call, std::make_shared<const Error>(why), to_run);
      pool_.skip(call, to_run);
    }
    slot_.queue.clear();
  }
  pool_.run_later(std::move(to_run));
  scope = nullptr;  // on this thread: it restores thread-local modes
  PoolCore::Lock lock(pool_.mutex_);
  slot_.ended = true;
  pool_.changed_.notify_all();
}

}  // namespace troupe::detail
