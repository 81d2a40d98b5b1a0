#include "wait_graph.hpp"

#include <troupe/base/text.hpp>
#include "pool_core.hpp"

namespace troupe::detail {

Result<void> WaitGraph::enter(RankState& rank, const std::shared_ptr<CallBase>& call) {
  std::lock_guard lock(mutex_);
  std::set<const RankState*> seen;
  if (leads_to(*call, rank, seen)) {
    return fail(Errc::kDeadlock, text("waiting for ", call->verb.name, " of pool ", call->pool->options.name,
                                      " would never end: that call needs this rank, or one that waits for it; pass a Ref instead of waiting"),
                {.pool = rank.pool.options.name, .rank = rank.index});
  }
  waits_[&rank] = call;
  return {};
}

void WaitGraph::leave(RankState& rank) {
  std::lock_guard lock(mutex_);
  waits_.erase(&rank);
}

bool WaitGraph::leads_to(const CallBase& call, const RankState& rank, std::set<const RankState*>& seen) const {
  if (call.complete() || !call.pool || call.only_rank == kFreeRank) return false;  // any free rank may take that one
  for (int target = 0; target < call.pool->size(); ++target) {
    if (call.only_rank >= 0 && call.only_rank != target) continue;
    const RankState& state = call.pool->state(target);
    if (state.done_ticket.load(std::memory_order_acquire) >= call.ticket) continue;
    if (&state == &rank) return true;
    if (!seen.insert(&state).second) continue;
    const auto next = waits_.find(&state);
    if (next != waits_.end() && next->second.get() != &call && leads_to(*next->second, rank, seen)) return true;
  }
  return false;
}

}  // namespace troupe::detail
