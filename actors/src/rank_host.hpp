#pragma once

#include <memory>

#include <troupe/actors/pool.hpp>

namespace troupe::detail {

class GroupTable;

/// Where the object of one rank lives: in this process, or in a worker. All calls by the rank's own thread; each
/// throws what the user's code threw, or why it could not be reached.
class RankHost {
 public:
  virtual ~RankHost() = default;
  virtual void construct(Rank& rank) = 0;
  /// Runs the verb and leaves its value where `call` finds it.
  virtual void run(CallBase& call, Rank& rank) = 0;
  virtual void destroy() noexcept = 0;
};

/// Where the ranks of one pool live. Thread: any.
class RankHosts {
 public:
  virtual ~RankHosts() = default;
  [[nodiscard]] virtual std::unique_ptr<RankHost> host(int rank) = 0;
  /// Ends the groups of `generation` (or kEveryGeneration), so that ranks inside a collective return at once (POOL-7).
  virtual void end_generation(GroupTable& groups, std::uint64_t generation, const Error& why) = 0;
  /// The pool closes: long verbs should see it on their stop token.
  virtual void stop() {}
};

/// In this process.
[[nodiscard]] std::shared_ptr<RankHosts> local_hosts(Factory factory);

}  // namespace troupe::detail
