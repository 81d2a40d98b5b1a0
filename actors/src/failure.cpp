#include <utility>

#include <troupe/base/text.hpp>
#include "pool_core.hpp"
#include "supervise.hpp"

namespace troupe::detail {

/// With the mutex held: completes the call; who still has it in a queue skips it.
void PoolCore::finish(const CallPtr& call, ErrorPtr error, ToRun& to_run) {
  if (!call->finish(std::move(error), to_run)) return;
  for (auto& slot : slots_) {
    if (slot->running == call && slot->resolving) slot->resolving->poke();
  }
}

/// With the mutex held: a rank will not run the call. Its arguments go outside the lock: their
/// destructors are user code (SUP-7), and the last handle of this very pool may be among them.
void PoolCore::skip(const CallPtr& call, ToRun& to_run) {
  const bool last = call->remaining.fetch_sub(1, std::memory_order_acq_rel) == 1;
  if (last) release(call);
  to_run.push_back({[call, last] {
    if (last) call->drop_arguments();
  }});
}

/// Fails what waits in the queues, with the mutex held; `spare_pure` leaves pure verbs.
void PoolCore::fail_queued(const Error& error, bool spare_pure, ToRun& to_run) {
  const auto shared_error = std::make_shared<const Error>(error);
  const auto sweep = [&](std::deque<CallPtr>& queue) {
    std::deque<CallPtr> kept;
    for (CallPtr& call : queue) {
      const bool begun = call->generation != 0;  // on another rank: it ends there or is doomed with its group
      if (begun || (spare_pure && call->verb.is_pure) || call->only_rank == kRebuild) {
        if (!closing_ || begun) {
          kept.push_back(std::move(call));
          continue;
        }
      }
      finish(call, shared_error, to_run);
      skip(call, to_run);
    }
    queue.swap(kept);
  };
  for (auto& slot : slots_) sweep(slot->queue);
  sweep(shared_);
}

/// With the mutex held: calls of `generation`, which ends, can't meet their peers any more.
void PoolCore::doom_started(std::uint64_t generation, const Error& cause, ToRun& to_run) {
  const auto doom = [&](const CallPtr& call) {
    if (!call || call->width == 1 || call->generation != generation || call->complete()) return;
    finish(call, std::make_shared<const Error>(caused_by(cause, Errc::kPeerLost,
                 text(call->verb.name, " ended with its group: another call of pool ", options.name, " failed on some rank"), origin(-1))), to_run);
  };
  for (auto& slot : slots_) {
    doom(slot->running);
    for (const CallPtr& call : slot->queue) doom(call);
  }
}

/// POOL-7: a failure of one rank in an all-rank call fails that ticket on all ranks at once.
void PoolCore::fail_ticket(const CallPtr& call, Error error, int rank) {
  if (error.origin.pool.empty()) error.origin = origin(rank);
  ToRun to_run;
  std::uint64_t ending = 0;
  {
    Lock lock(mutex_);
    if (call->complete()) return;  // another rank was first
    const FailureDecision decision = decide({.all_ranks = call->width > 1, .began = call->generation != 0, .is_pure = call->verb.is_pure});
    error.maybe_executed = error.maybe_executed || decision.maybe_executed;
    finish(call, std::make_shared<const Error>(error), to_run);
    if (decision.end_generation) {
      ending = call->generation;
      if (ending == generation_) ++generation_;
      doom_started(ending, error, to_run);
      // a reset() that was asked for later builds every object anew: what this call changed goes with the old ones
      if (decision.make_inconsistent && call->ticket > reset_ticket_) {
        inconsistent_ = std::make_shared<const Error>(error);
        fail_queued(caused_by(error, Errc::kInconsistent, text("pool ", options.name, " became inconsistent before the call began; reset() it"), origin(-1)), true, to_run);
      }
    }
  }
  if (ending != 0) hosts_->end_generation(groups, ending, error);
  run_later(std::move(to_run));
}

/// SUP-6: the pool never was: everything pending and later fails with the cause.
void PoolCore::fail_pool(Error error) {
  ToRun to_run;
  {
    Lock lock(mutex_);
    if (!failed_) failed_ = std::make_shared<const Error>(error);
    fail_queued(*failed_, false, to_run);
    changed_.notify_all();
    room_.notify_all();
  }
  hosts_->end_generation(groups, kEveryGeneration, error);
  run_later(std::move(to_run));
}

}  // namespace troupe::detail
