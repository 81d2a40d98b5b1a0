#include "groups.hpp"

#include <utility>

#include <troupe/base/text.hpp>
#include "pool_core.hpp"

namespace troupe::detail {

std::shared_ptr<transport::Group> GroupTable::take(const transport::Context& context, std::uint64_t generation, const std::string& key,
                                                   int size, int member) {
  if (size == 1) return transport::solo_group(key);
  std::lock_guard lock(mutex_);
  auto& ends = open_[{generation, key}];
  if (ends.empty()) {
    auto opened = or_throw(transport::open_inproc_group(context, key, size));
    for (auto& end : opened) ends.push_back(std::move(end));
    // a rank that comes late to a generation that failed must not wait for peers that won't come
    if (generation <= past_ || failed_.contains(generation)) ends.front()->abort(why_);
  }
  return ends[static_cast<std::size_t>(member)];
}

void GroupTable::abort(std::uint64_t generation, const Error& why) {
  std::vector<std::shared_ptr<transport::Group>> ending;
  {
    std::lock_guard lock(mutex_);
    if (generation == kEveryGeneration) past_ = generation;
    if (generation > past_) failed_.insert(generation);
    while (failed_.erase(past_ + 1) > 0) ++past_;
    why_ = why;
    for (auto at = open_.begin(); at != open_.end();) {
      if (at->first.first != generation && generation != kEveryGeneration) {
        ++at;
        continue;
      }
      ending.insert(ending.end(), at->second.begin(), at->second.end());
      at = open_.erase(at);
    }
  }
  for (const auto& group : ending) group->abort(why);
}

AxisGroup::AxisGroup(RankState& state, std::string name, std::string key, std::vector<int> members, int member)
    : state_(state), name_(std::move(name)), key_(std::move(key)), members_(std::move(members)), size_(static_cast<int>(members_.size())), member_(member) {}

template <class Operation>
Result<void> AxisGroup::with_current(Operation operation) {
  if (size_ > 1 && !state_.groups_allowed) {  // POOL-2: its peers do not run this verb
    return fail(Errc::kInvalidArgument, text("group '", name_, "' was used inside a verb called by one() or at(): only call() runs on every member"),
                {.pool = state_.pool.options.name, .rank = state_.index});
  }
  if (auto ok = state_.pool.can_group(members_); !ok) return fail(std::move(ok.error()));
  if (!inner_ || generation_ != state_.generation) {
    if (inner_) before_ = traffic();
    inner_ = state_.pool.groups.take(state_.pool.services->transport, state_.generation, key_, size_, member_);
    generation_ = state_.generation;
    ticket_ = ~state_.ticket;
  }
  if (ticket_ != state_.ticket) {
    ticket_ = state_.ticket;
    inner_->begin(ticket_, state_.pool.services->clock().after(state_.pool.options.collective_deadline));
  }
  return operation(*inner_);
}

transport::GroupTraffic AxisGroup::traffic() const {
  transport::GroupTraffic sum = inner_ ? inner_->traffic() : transport::GroupTraffic{};
  sum.sent_bytes += before_.sent_bytes;
  sum.received_bytes += before_.received_bytes;
  sum.operations += before_.operations;
  return sum;
}

Result<void> AxisGroup::all_reduce(transport::Tensor inout, transport::Reduce reduce) {
  return with_current([&](transport::Group& group) { return group.all_reduce(std::move(inout), reduce); });
}
Result<void> AxisGroup::all_gather(transport::Tensor in, std::span<const transport::Tensor> out) {
  return with_current([&](transport::Group& group) { return group.all_gather(std::move(in), out); });
}
Result<void> AxisGroup::reduce_scatter(std::span<const transport::Tensor> in, transport::Tensor out) {
  return with_current([&](transport::Group& group) { return group.reduce_scatter(in, std::move(out)); });
}
Result<void> AxisGroup::all_to_all(std::span<const transport::Tensor> in, std::span<const transport::Tensor> out) {
  return with_current([&](transport::Group& group) { return group.all_to_all(in, out); });
}
Result<void> AxisGroup::broadcast(transport::Tensor inout, int root) {
  return with_current([&](transport::Group& group) { return group.broadcast(std::move(inout), root); });
}
Result<void> AxisGroup::barrier() {
  return with_current([](transport::Group& group) { return group.barrier(); });
}

void AxisGroup::begin(std::uint64_t /*ticket*/, Deadline /*deadline*/) {}  // the pool's ticket counts

void AxisGroup::abort(const Error& why) {
  if (inner_) inner_->abort(why);
}

}  // namespace troupe::detail
