#pragma once

#include <memory>

#include "rank_host.hpp"
#include "worker_set.hpp"

namespace troupe::detail {

/// In the workers of `set`. Fails with: kUnavailable when T or its constructor's arguments can't travel.
[[nodiscard]] Result<std::shared_ptr<RankHosts>> remote_hosts(std::shared_ptr<WorkerSet> set, std::uint64_t pool, const PoolOptions& options, PoolClass made);

}  // namespace troupe::detail
