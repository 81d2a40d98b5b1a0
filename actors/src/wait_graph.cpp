#include "wait_graph.hpp"

#include <troupe/base/text.hpp>
#include "pool_core.hpp"

namespace troupe::detail {

namespace {

/// The ranks that have the call before them, or may take it; true as soon as `visit` is.
template <class Visit>
bool visit_targets(const CallBase& call, Visit visit) {
  if (call.complete() || !call.pool) return false;
  const int only = call.only_rank == kFreeRank ? call.taker.load(std::memory_order_acquire) : call.only_rank;
  for (int target = 0; target < call.pool->size(); ++target) {
    const RankState& state = call.pool->state(target);
    if ((only >= 0 && only != target) || state.done_ticket.load(std::memory_order_acquire) >= call.ticket) continue;
    if (visit(state)) return true;
  }
  return false;
}

/// True when the call can't complete while none of the ranks in `stuck` goes on.
bool held_up(const CallBase& call, const std::set<const RankState*>& stuck) {
  const bool any_will_do = call.only_rank == kFreeRank && call.taker.load(std::memory_order_acquire) < 0;
  if (!any_will_do) return visit_targets(call, [&](const RankState& state) { return stuck.contains(&state); });
  if (call.complete() || !call.pool) return false;
  for (int target = 0; target < call.pool->size(); ++target) {
    if (!stuck.contains(&call.pool->state(target))) return false;
  }
  return true;
}

}  // namespace

Result<void> WaitGraph::enter(RankState& rank, const std::shared_ptr<CallBase>& call) {
  std::lock_guard lock(mutex_);
  Ranks seen;
  // most waits lead nowhere near this rank: only the others are looked at as a whole
  if (leads_to(*call, rank, seen) && is_stuck(*call, rank)) {
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

bool WaitGraph::leads_to(const CallBase& call, const RankState& rank, Ranks& seen) const {
  return visit_targets(call, [&](const RankState& state) {
    if (&state == &rank) return true;
    if (!seen.insert(&state).second) return false;
    const auto next = waits_.find(&state);
    return next != waits_.end() && next->second.get() != &call && leads_to(*next->second, rank, seen);
  });
}

/// Takes all waiting ranks for stuck, and lets go of those whose call still has a way to end, until none is left.
bool WaitGraph::is_stuck(const CallBase& call, const RankState& rank) const {
  Ranks stuck{&rank};
  for (const auto& [state, waited] : waits_) stuck.insert(state);
  for (bool changed = true; changed && held_up(call, stuck);) {
    changed = false;
    for (const auto& [state, waited] : waits_) {
      if (stuck.contains(state) && !held_up(*waited, stuck)) changed = stuck.erase(state) > 0 || changed;
    }
  }
  return held_up(call, stuck);
}

}  // namespace troupe::detail
