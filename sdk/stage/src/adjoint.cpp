#include <troupe/stage/edge.hpp>

#include <ATen/ATen.h>

#include <troupe/base/text.hpp>
#include "rows.hpp"

namespace troupe::detail {
namespace {

/// Ranks of the consumer that hold the same rows: by their index in the sharded axes.
std::vector<std::vector<std::size_t>> replicas_of(const EdgeBase& edge) {
  std::vector<std::string> axes = edge.layout.sample_axes;
  axes.insert(axes.end(), edge.layout.row_axes.begin(), edge.layout.row_axes.end());
  std::vector<std::vector<std::size_t>> groups(static_cast<std::size_t>(axes.empty() ? 1 : edge.mesh.size_of(axes)));
  for (int rank = 0; rank < edge.mesh.size(); ++rank) {
    const int index = axes.empty() ? 0 : edge.mesh.index_in(rank, axes);
    groups[static_cast<std::size_t>(index)].push_back(static_cast<std::size_t>(rank));
  }
  return groups;
}

/// EDG-2: replicas that are declared identical must be, bit for bit.
void check_replicas(const EdgeGradient& gradient, const std::vector<std::size_t>& replicas) {
  for (const std::size_t other : replicas) {
    if (at::equal(gradient.by_rank[other].rows, gradient.by_rank[replicas.front()].rows)) continue;
    throw Exception(Error{.code = Errc::kMismatch,
                          .message = text("edge ", gradient.edge->name, " says Grad::kReplicated, but the gradients of ranks ",
                                          replicas.front(), " and ", other, " differ; is it Grad::kPartial (a sum that is missing)?")});
  }
}

/// One tensor per group of replicas: the one that counts, or their sum in rank order.
std::vector<at::Tensor> reduced(const EdgeGradient& gradient, const std::vector<std::vector<std::size_t>>& groups, int own_rank) {
  std::vector<at::Tensor> out;
  for (const auto& replicas : groups) {
    if (gradient.edge->layout.grad == Grad::kReplicated) {
      if (gradient.edge->check_replicas) check_replicas(gradient, replicas);
      // each source rank takes another replica, so that readers spread
      out.push_back(gradient.by_rank[replicas[static_cast<std::size_t>(own_rank) % replicas.size()]].rows);
      continue;
    }
    at::Tensor sum = gradient.by_rank[replicas.front()].rows;
    for (std::size_t i = 1; i < replicas.size(); ++i) sum = sum + gradient.by_rank[replicas[i]].rows;
    out.push_back(std::move(sum));
  }
  return out;
}

}  // namespace

at::Tensor adjoint_rows(const Segments& own, int own_rank, const EdgeGradient& gradient, EdgeTraffic& traffic) {
  const auto groups = replicas_of(*gradient.edge);
  std::vector<Segments> held;
  for (const auto& replicas : groups) held.push_back(gradient.by_rank[replicas.front()].segments);
  const auto slices = or_throw(reshard(held, {&own, 1}));
  const auto rows = reduced(gradient, groups, own_rank);
  return take_rows(rows, slices.front(), traffic, gradient.edge->counters.get());
}

}  // namespace troupe::detail
