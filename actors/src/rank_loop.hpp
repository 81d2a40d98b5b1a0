#pragma once

#include <memory>
#include <vector>

#include "pool_core.hpp"

namespace troupe::detail {

/// The life of one rank on its own thread: environment, constructor, verbs in ticket order, destruction.
class RankLoop {
 public:
  RankLoop(PoolCore& pool, int rank) : pool_(pool), slot_(*pool.slots_[static_cast<std::size_t>(rank)]), rank_(slot_.state) {}
  void run();

 private:
  [[nodiscard]] bool construct();
  [[nodiscard]] CallPtr next(const CallPtr& done);
  void execute(const CallPtr& call);
  [[nodiscard]] bool resolve(const CallPtr& call);
  [[nodiscard]] bool begin(const CallPtr& call);
  void invoke(const CallPtr& call);
  void complete(const CallPtr& call);
  void rebuild(const CallPtr& call);
  void end();

  PoolCore& pool_;
  RankSlot& slot_;
  Rank rank_;
  std::vector<CallPtr> dependencies_;   ///< Reused: no allocation per call.
};

}  // namespace troupe::detail
