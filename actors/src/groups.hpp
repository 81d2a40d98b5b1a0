#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <troupe/transport/group.hpp>

namespace troupe::detail {

class PoolCore;
class RankState;

inline constexpr std::uint64_t kEveryGeneration = ~std::uint64_t{0};

/// The inner groups of a pool by generation and members, opened on first use. Thread: any.
class GroupTable {
 public:
  /// `member`'s end of the group of `size` named `key` in `generation`. A generation that has failed gives
  /// groups that are aborted.
  [[nodiscard]] std::shared_ptr<transport::Group> take(const transport::Context& context, std::uint64_t generation, const std::string& key,
                                                       int size, int member);
  /// Ends every group of that generation, and of no other: waiters return at once (POOL-7). kEveryGeneration: of
  /// all there are and will be.
  void abort(std::uint64_t generation, const Error& why);

 private:
  using Key = std::pair<std::uint64_t, std::string>;
  std::mutex mutex_;
  std::map<Key, std::vector<std::shared_ptr<transport::Group>>> open_;
  std::set<std::uint64_t> failed_;   ///< Of those after past_.
  std::uint64_t past_ = 0;           ///< This one and all before it have ended.
  Error why_;
};

/// What a rank's code holds for an axis: stays valid over generations; switches on its own thread at the
/// first collective of a verb.
class AxisGroup final : public transport::Group {
 public:
  /// `members`: the ranks in it, in order; this one is members[member].
  AxisGroup(RankState& state, std::string name, std::string key, std::vector<int> members, int member);

  [[nodiscard]] int rank() const noexcept override { return member_; }
  [[nodiscard]] int size() const noexcept override { return size_; }
  [[nodiscard]] const std::string& name() const noexcept override { return name_; }
  [[nodiscard]] transport::GroupTraffic traffic() const override;
  [[nodiscard]] Result<void> all_reduce(transport::Tensor inout, transport::Reduce reduce) override;
  [[nodiscard]] Result<void> all_gather(transport::Tensor in, std::span<const transport::Tensor> out) override;
  [[nodiscard]] Result<void> reduce_scatter(std::span<const transport::Tensor> in, transport::Tensor out) override;
  [[nodiscard]] Result<void> all_to_all(std::span<const transport::Tensor> in, std::span<const transport::Tensor> out) override;
  [[nodiscard]] Result<void> broadcast(transport::Tensor inout, int root) override;
  [[nodiscard]] Result<void> barrier() override;
  void begin(std::uint64_t ticket, Deadline deadline) override;
  void abort(const Error& why) override;

 private:
  template <class Operation>
  Result<void> with_current(Operation operation);

  RankState& state_;
  std::string name_;
  std::string key_;
  std::vector<int> members_;
  int size_;
  int member_;
  std::shared_ptr<transport::Group> inner_;
  std::uint64_t generation_ = 0;
  std::uint64_t ticket_ = 0;
  transport::GroupTraffic before_;   ///< Of earlier generations.
};

}  // namespace troupe::detail
