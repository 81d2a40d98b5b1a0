#include <algorithm>

#include <troupe/base/text.hpp>
#include <troupe/base/units.hpp>
#include "graph_core.hpp"

namespace troupe::detail {
namespace {

constexpr Duration kAsk = std::chrono::minutes(1);

bool names(const std::vector<std::string>& axes, const std::string& axis) { return std::ranges::find(axes, axis) != axes.end(); }

Result<void> check_shape_of(const GraphCore& graph) {
  if (graph.wrong) return fail(*graph.wrong);
  bool has_loss = false;
  std::size_t stages = 0;
  for (int index = 0; index < static_cast<int>(graph.nodes.size()); ++index) {
    const Node& node = graph.node({index});
    if (!node.stage) continue;
    ++stages;
    has_loss = has_loss || node.makes_loss;
    for (int port = 0; port < node.inputs; ++port) {
      const bool fed = std::ranges::any_of(graph.edges, [&](const auto& edge) { return edge->to.index == index && edge->to_port == port; });
      if (!fed) return fail(Errc::kNoEdge, text("input ", port, " of stage ", node.name, " is not connected"));
    }
  }
  if (stages == 0) return fail(Errc::kInvalidArgument, "the graph has no stage");
  if (graph.stages_in_order().size() != stages) return fail(Errc::kInvalidArgument, "the edges between the stages form a cycle; a graph must not");
  if (!has_loss) return fail(Errc::kInvalidArgument, "no stage returns a Loss: there is nothing to train");
  return {};
}

/// Each data axis of the stage must either shard what flows in, or be one over which replicas are right.
Result<void> check_layout(const GraphCore& graph, const EdgeBase& edge) {
  const Node& to = graph.node(edge.to);
  std::vector<std::string> axes = edge.layout.sample_axes;
  axes.insert(axes.end(), edge.layout.row_axes.begin(), edge.layout.row_axes.end());
  for (const auto& axis : axes) {
    if (to.mesh.size(axis) > 1 && !names(to.options.data_axes, axis)) {
      return fail(Errc::kInvalidArgument, text("edge ", edge.name, " shards over axis '", axis, "', which is not among the data_axes of stage ", to.name,
                                               ": its gradients would not be summed over it"));
    }
  }
  if (to.mesh.size("dp") > 1 && !names(axes, "dp")) {
    return fail(Errc::kInvalidArgument, text("edge ", edge.name, " replicates over dp = ", to.mesh.size("dp"),
                                             ": each sample would be trained that many times; use by_sample(\"dp\") or balance(\"dp\", ...)"));
  }
  const bool from_stage = graph.node(edge.from).stage.has_value();
  if (from_stage && !edge.carries_gradient()) {
    return fail(Errc::kInvalidArgument, text("edge ", edge.name, " must say how its gradient returns: Grad::kPartial (replicas hold parts) or "
                                             "Grad::kReplicated (each holds the whole)"));
  }
  if (!from_stage && edge.carries_gradient()) {
    return fail(Errc::kInvalidArgument, text("edge ", edge.name, " comes from a source, which takes no gradient: leave Grad out"));
  }
  return {};
}

std::string show(const PortSpec& spec) {
  std::string out = text(c10::toString(spec.dtype), " [rows");
  for (const auto dim : spec.row_dims) out += dim < 0 ? std::string(", any") : text(", ", dim);
  return out + "]";
}

bool compatible(const PortSpec& a, const PortSpec& b) {
  if (a.dtype != b.dtype || a.row_dims.size() != b.row_dims.size()) return false;
  for (std::size_t i = 0; i < a.row_dims.size(); ++i) {
    if (a.row_dims[i] >= 0 && b.row_dims[i] >= 0 && a.row_dims[i] != b.row_dims[i]) return false;
  }
  return true;
}

Result<void> check_ports(const GraphCore& graph, const EdgeBase& edge, const std::vector<StageDescription>& described) {
  if (edge.from_batch()) return {};
  const auto& out = described[static_cast<std::size_t>(edge.from.index)].outputs;
  const auto& in = described[static_cast<std::size_t>(edge.to.index)].inputs;
  if (out.size() <= static_cast<std::size_t>(edge.from_port) || in.size() <= static_cast<std::size_t>(edge.to_port)) return {};
  const PortSpec& from = out[static_cast<std::size_t>(edge.from_port)];
  const PortSpec& to = in[static_cast<std::size_t>(edge.to_port)];
  if (compatible(from, to)) return {};
  return fail(Errc::kMismatch, text("edge ", edge.name, ": ", graph.node(edge.to).name, " expects ", to.name, " ", show(to), ", ",
                                    graph.node(edge.from).name, " declares ", from.name, " ", show(from)));
}

/// Parameters, gradients and AdamW's two moments must fit before anything runs.
Result<void> check_budget(const Node& node, const StageDescription& description) {
  const std::int64_t budget = node.options.per_rank.gpu_memory_bytes;
  const std::int64_t needed = 4 * description.parameter_bytes;
  if (budget <= 0 || needed <= budget) return {};
  return fail(Errc::kOutOfMemory, text("stage ", node.name, ": parameters, gradients and AdamW's moments need ", format_bytes(needed), " on rank 0, gpu_memory_bytes is ",
                                       format_bytes(budget), "; raise it or shard over more ranks"), {.pool = node.name, .rank = 0});
}

/// The layout of what a stage puts out: as its first packed input came in.
PortLayout output_layout(const GraphCore& graph, NodeId stage) {
  for (int port = 0; port < graph.node(stage).inputs; ++port) {
    for (const auto& edge : graph.edges) {
      if (edge->to == stage && edge->to_port == port && dynamic_cast<const Edge<Packed>*>(edge.get()) != nullptr) return edge->layout;
    }
  }
  return replicate();
}

/// A data axis over which nothing is sharded would sum each gradient as often as the axis has members.
Result<void> check_data_axes(const GraphCore& graph, NodeId stage) {
  const Node& node = graph.node(stage);
  for (const auto& axis : node.options.data_axes) {
    if (node.mesh.size(axis) == 1) continue;
    const bool sharded = std::ranges::any_of(graph.edges, [&](const auto& edge) {
      return edge->to == stage && (names(edge->layout.sample_axes, axis) || names(edge->layout.row_axes, axis));
    });
    if (sharded) continue;
    return fail(Errc::kInvalidArgument, text("stage ", node.name, " has ", axis, " = ", node.mesh.size(axis), " among its data_axes, but no edge shards an input over it: its gradients would be summed ",
                                             node.mesh.size(axis), " times; shard an input over it or leave it out of StageOptions::data_axes"));
  }
  return {};
}

Result<void> check_edges(const GraphCore& graph, const std::vector<StageDescription>& described) {
  for (const auto& edge : graph.edges) {
    if (auto ok = check_layout(graph, *edge); !ok) return ok;
    if (auto ok = check_ports(graph, *edge, described); !ok) return ok;
    if (!edge->carries_gradient()) continue;
    if (auto ok = check_adjoint(*edge, graph.node(edge->from).mesh, output_layout(graph, edge->from)); !ok) return ok;
  }
  return {};
}

}  // namespace

Result<void> check_graph(GraphCore& graph) {
  if (auto ok = check_shape_of(graph); !ok) return ok;
  std::vector<StageDescription> described(graph.nodes.size());
  for (std::size_t index = 0; index < graph.nodes.size(); ++index) {
    const Node& node = graph.nodes[index];
    if (!node.stage) continue;
    auto description = node.stage->at<&StageHost::describe>(0).get(kAsk);
    if (!description) return fail(std::move(description.error()));
    if (!description->inputs.empty() && static_cast<int>(description->inputs.size()) != node.inputs) {
      return fail(Errc::kInvalidArgument, text("stage ", node.name, ": input_ports() lists ", description->inputs.size(), " ports, forward() takes ", node.inputs));
    }
    described[index] = std::move(*description);
    if (auto ok = check_budget(node, described[index]); !ok) return ok;
  }
  if (auto ok = check_edges(graph, described); !ok) return ok;
  for (const NodeId stage : graph.stages_in_order()) {
    if (auto ok = check_data_axes(graph, stage); !ok) return ok;
  }
  if (graph.options.rehearse) {
    if (auto ok = rehearse(graph); !ok) return ok;
  }
  graph.checked = true;
  return {};
}

}  // namespace troupe::detail
