#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include <troupe/base/text.hpp>
#include "graph_core.hpp"

namespace troupe::detail {
namespace {

/// Values without a pattern, and without LibTorch's generator: the host's random stream stays its own (EMB).
at::Tensor scattered(std::int64_t rows, double phase) {
  return at::arange(rows * 3, at::kDouble).mul(12.9898).add(phase).sin().mul(43758.5453).frac().reshape({rows, 3});
}

Segments sample_items() {
  Segments out;
  const std::int64_t rows[] = {8, 4, 16, 12, 4, 20, 8};
  for (std::int64_t i = 0; i < 7; ++i) out.push_back({.id = i, .sample = i / 2, .rows = rows[i], .cut_multiple = 4, .cost = 0});
  return out;
}

/// One shard's rows of the global tensor; replicas get the same ones.
std::vector<Packed> lay_out(const std::vector<Segments>& held, const Segments& items, const at::Tensor& global) {
  std::vector<Packed> out;
  for (const Segments& pieces : held) {
    std::vector<at::Tensor> rows{global.narrow(0, 0, 0)};
    for (const Segment& piece : pieces) {
      std::int64_t begin = 0;
      for (const Segment& item : items) {
        if (item.id == piece.id) break;
        begin += item.rows;
      }
      rows.push_back(global.narrow(0, begin + piece.first, piece.rows));
    }
    Packed packed;
    packed.rows = at::cat(rows);
    packed.segments = pieces;
    out.push_back(std::move(packed));
  }
  return out;
}

/// Ranks with the same index hold the same rows.
int shard_index(const PortLayout& layout, const Mesh& mesh, int rank) {
  std::vector<std::string> axes = layout.sample_axes;
  axes.insert(axes.end(), layout.row_axes.begin(), layout.row_axes.end());
  return axes.empty() ? 0 : mesh.index_in(rank, axes);
}

/// The ranks that count when replicas hold the same: the first of each.
std::vector<bool> first_of_replicas(const PortLayout& layout, const Mesh& mesh) {
  std::vector<int> seen;
  std::vector<bool> out;
  for (int rank = 0; rank < mesh.size(); ++rank) {
    const int index = shard_index(layout, mesh, rank);
    out.push_back(std::ranges::find(seen, index) == seen.end());
    seen.push_back(index);
  }
  return out;
}

}  // namespace

Result<void> check_adjoint(const EdgeBase& edge, const Mesh& source_mesh, const PortLayout& source_layout) try {
  const Segments items = sample_items();
  const std::int64_t samples = 4;
  const auto held = or_throw(distribute(items, samples, source_layout, source_mesh));
  const auto sources = lay_out(held, items, scattered(rows_of(items), 0));
  std::vector<const Packed*> pointers;
  for (const auto& source : sources) pointers.push_back(&source);

  const auto first_reader = first_of_replicas(edge.layout, edge.mesh);
  const bool replicated = edge.layout.grad == Grad::kReplicated;
  EdgeGradient gradient;
  gradient.edge = std::shared_ptr<const EdgeBase>(std::shared_ptr<const EdgeBase>(), &edge);  // not owned: outlives the call
  double forward = 0;
  for (int rank = 0; rank < edge.mesh.size(); ++rank) {
    SliceContext context;
    context.layout = &edge.layout;
    context.mesh = &edge.mesh;
    context.rank = rank;
    context.range = {0, samples, samples};
    context.edge = edge.name;
    Packed arrived = gather_packed(pointers, false, context);
    const int phase = replicated ? shard_index(edge.layout, edge.mesh, rank) : rank;
    const at::Tensor y = scattered(arrived.rows.size(0), 1.0 + phase);
    if (!replicated || first_reader[static_cast<std::size_t>(rank)]) forward += arrived.rows.mul(y).sum().item<double>();
    arrived.rows = y;
    gradient.by_rank.push_back(std::move(arrived));
  }

  double backward = 0;
  const auto first_source = first_of_replicas(source_layout, source_mesh);
  for (std::size_t rank = 0; rank < sources.size(); ++rank) {
    EdgeTraffic traffic;
    const at::Tensor back = adjoint_rows(sources[rank].segments, static_cast<int>(rank), gradient, traffic);
    if (first_source[rank]) backward += sources[rank].rows.mul(back).sum().item<double>();
  }
  if (std::abs(forward - backward) <= 1e-9 * std::max(1.0, std::abs(forward))) return {};
  return fail(Errc::kInternal, text("edge ", edge.name, " is not the adjoint of itself: <A x, y> = ", forward, ", <x, A* y> = ", backward,
                                    "; please report the meshes and layouts"));
} catch (...) {
  return fail(error_from_current_exception(Errc::kInternal));
}

}  // namespace troupe::detail
