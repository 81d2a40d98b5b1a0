#include <algorithm>

#include <troupe/base/text.hpp>
#include <troupe/parallel/optimizer.hpp>
#include "graph_core.hpp"

namespace troupe::detail {

bool counts_loss(const Mesh& mesh, int rank, std::span<const std::string> sample_axes) {
  return std::ranges::all_of(mesh.axes(), [&](const Axis& axis) {
    return mesh.coordinate(rank, axis.name) == 0 || std::ranges::find(sample_axes, axis.name) != sample_axes.end();
  });
}

Result<Optimizer> make_optimizer(const std::shared_ptr<GraphCore>& graph, OptimizerOptions options) {
  if (options.groups.empty()) return fail(Errc::kInvalidArgument, "the optimizer has no parameter group; {{\"*\", learning_rate}} takes all");
  if (!graph->checked) {
    if (auto checked = check_graph(*graph); !checked) return fail(std::move(checked.error()));
  }
  std::vector<int> matched(options.groups.size(), 0);
  for (const NodeId stage : graph->stages_in_order()) {
    const Node& node = graph->node(stage);
    auto described = node.stage->at<&StageHost::describe>(0).get(std::chrono::minutes(1));
    if (!described) return fail(std::move(described.error()));
    for (const std::string& name : described->names) {
      const auto group = std::ranges::find_if(options.groups, [&](const ParameterGroup& one) { return matches_pattern(one.pattern, name); });
      if (group == options.groups.end()) return fail(Errc::kInvalidArgument, text("parameter ", name, " is in no group of the optimizer; add one, or {\"*\", ...} last"));
      ++matched[static_cast<std::size_t>(group - options.groups.begin())];
    }
  }
  for (std::size_t i = 0; i < matched.size(); ++i) {
    if (matched[i] == 0) return fail(Errc::kInvalidArgument, text("parameter group '", options.groups[i].pattern, "' matches no parameter; names look like vision.blocks.0.weight"));
  }
  for (const NodeId stage : graph->stages_in_order()) {
    if (auto set = graph->node(stage).stage->call<&StageHost::set_optimizer>(options).get(std::chrono::minutes(1)); !set) return fail(std::move(set.error()));
  }
  return Optimizer(std::make_shared<OptimizerCore>(OptimizerCore{graph, std::move(options), 0}));
}

}  // namespace troupe::detail

namespace troupe {

using detail::Export;
using detail::StageHost;

std::int64_t Optimizer::steps() const noexcept { return core_->step; }

Result<std::map<std::string, at::Tensor>> Optimizer::state(Duration timeout) const {
  std::map<std::string, at::Tensor> out;
  for (const NodeId stage : core_->graph->stages_in_order()) {
    for (const Export what : {Export::kFirstMoments, Export::kSecondMoments, Export::kUpdates}) {
      auto part = detail::global_tensors(*core_->graph, stage, what, timeout);
      if (!part) return part;
      out.merge(*part);
    }
  }
  return out;
}

Result<void> Optimizer::load(std::shared_ptr<const TensorReader> reader, std::int64_t steps, Duration timeout) const {
  const detail::StoredParameters stored{std::move(reader), [](const std::string& name) { return name; }};
  const auto stages = core_->graph->stages_in_order();
  for (const NodeId stage : stages) {
    if (auto ok = core_->graph->node(stage).stage->call<&StageHost::expect_moments>(stored).get(timeout); !ok) return ok;
  }
  for (const NodeId stage : stages) {
    if (auto ok = core_->graph->node(stage).stage->call<&StageHost::load_moments>(stored).get(timeout); !ok) return ok;
  }
  core_->step = steps;
  return {};
}

}  // namespace troupe
