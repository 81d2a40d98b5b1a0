#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>

#include <troupe/base/result.hpp>

namespace troupe::detail {

class CallBase;
class RankState;

/// Which rank waits for which call, to refuse a wait that would close a cycle (POOL-6). Thread: any.
class WaitGraph {
 public:
  /// Registers that `rank` waits for `call`. Fails with: kDeadlock when the call can't complete before that
  /// rank goes on.
  [[nodiscard]] Result<void> enter(RankState& rank, const std::shared_ptr<CallBase>& call);
  void leave(RankState& rank);

 private:
  using Ranks = std::set<const RankState*>;
  [[nodiscard]] bool leads_to(const CallBase& call, const RankState& rank, Ranks& seen) const;
  [[nodiscard]] bool is_stuck(const CallBase& call, const RankState& rank) const;
  std::mutex mutex_;
  std::map<const RankState*, std::shared_ptr<CallBase>> waits_;
};

}  // namespace troupe::detail
