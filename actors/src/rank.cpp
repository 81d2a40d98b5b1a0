#include <troupe/actors/rank.hpp>

#include <algorithm>
#include <utility>

#include "pool_core.hpp"

namespace troupe {

namespace detail {

namespace {
thread_local RankState* current = nullptr;
}

RankState* current_rank() noexcept { return current; }
void set_current_rank(RankState* state) noexcept { current = state; }

/// The ranks that differ from `rank` on the named axes only, in the order of their index on those.
static std::vector<int> members_of(const Mesh& mesh, int rank, const std::vector<std::string>& named) {
  std::vector<std::string> others;
  for (const Axis& axis : mesh.axes()) {
    if (std::ranges::find(named, axis.name) == named.end()) others.push_back(axis.name);
  }
  std::vector<int> out(static_cast<std::size_t>(mesh.size_of(named)));
  for (int other = 0; other < mesh.size(); ++other) {
    if (mesh.index_in(other, others) == mesh.index_in(rank, others)) out[static_cast<std::size_t>(mesh.index_in(other, named))] = other;
  }
  return out;
}

RankState::RankState(PoolHome& p, int i) : pool(p), index(i) {}

}  // namespace detail

int Rank::index() const noexcept { return state_->index; }
int Rank::world_size() const noexcept { return state_->pool.size(); }
const Mesh& Rank::mesh() const noexcept { return state_->pool.options.mesh; }
const std::string& Rank::pool() const noexcept { return state_->pool.options.name; }
const RankPlacement& Rank::placement() const noexcept { return state_->pool.placement.ranks[static_cast<std::size_t>(state_->index)]; }
Clock& Rank::clock() const noexcept { return state_->pool.services->clock(); }
const transport::Context& Rank::transport() const noexcept { return state_->pool.services->transport; }
std::stop_token Rank::stop_token() const noexcept { return state_->stop.get_token(); }

transport::Group& Rank::axis(std::string_view name) const {
  const std::string axis(name);
  return group({&axis, 1});
}

transport::Group& Rank::group(std::span<const std::string> axes) const {
  std::vector<std::string> named(axes.begin(), axes.end());
  if (named.empty()) {
    for (const Axis& axis : mesh().axes()) named.push_back(axis.name);
  }
  std::string name;
  for (const auto& axis : named) name += (name.empty() ? "" : "+") + axis;
  auto& found = state_->groups[name];
  if (found) return *found;
  // members share every other coordinate: the key names those, so that each set has its own inner group
  std::string key = state_->pool.options.name + "." + name;
  for (const Axis& axis : mesh().axes()) {
    if (std::ranges::find(named, axis.name) == named.end()) key += "," + axis.name + std::to_string(mesh().coordinate(index(), axis.name));
  }
  found = std::make_unique<detail::AxisGroup>(*state_, name, std::move(key), detail::members_of(mesh(), index(), named), mesh().index_in(index(), named));
  return *found;
}

std::shared_ptr<void> Rank::attachment(std::type_index type, const std::function<std::shared_ptr<void>()>& make) const {
  auto& found = state_->attachments[type];
  if (!found) found = make();
  return found;
}

}  // namespace troupe
