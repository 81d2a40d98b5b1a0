#include <ATen/ATen.h>

#include <troupe/base/text.hpp>
#include "graph_core.hpp"

namespace troupe::detail {

Result<std::map<std::string, at::Tensor>> global_tensors(GraphCore& graph, NodeId stage, Export what, Duration timeout) {
  const Node& node = graph.node(stage);
  auto shards = node.stage->call<&StageHost::shards>(what).get(timeout);
  if (!shards) return fail(std::move(shards.error()));
  std::map<std::string, at::Tensor> out;
  for (std::size_t i = 0; i < shards->front().specs.size(); ++i) {
    const ParameterSpec& spec = shards->front().specs[i];
    std::vector<at::Tensor> locals;
    for (const NamedShards& rank : *shards) locals.push_back(rank.tensors[i]);
    auto whole = assemble(spec, node.mesh, locals);
    if (!whole) return fail(std::move(whole.error()));
    out.emplace(spec.name, std::move(*whole));
  }
  return out;
}

Result<void> load_global(GraphCore& graph, NodeId stage, std::map<std::string, at::Tensor> global, Duration timeout) {
  return graph.node(stage).stage->call<&StageHost::load>(std::move(global)).get(timeout);
}

Result<void> load_stored(GraphCore& graph, NodeId stage, StoredParameters stored, Duration timeout) {
  const auto& pool = *graph.node(stage).stage;
  if (auto ok = pool.call<&StageHost::expect_stored>(stored).get(timeout); !ok) return ok;
  return pool.call<&StageHost::load_stored>(std::move(stored)).get(timeout);
}

Result<std::map<std::string, at::Tensor>> all_parameters(GraphCore& graph, Duration timeout) {
  std::map<std::string, at::Tensor> out;
  for (const NodeId stage : graph.stages_in_order()) {
    auto part = global_tensors(graph, stage, Export::kParameters, timeout);
    if (!part) return part;
    out.merge(*part);
  }
  return out;
}

Result<void> load_all(GraphCore& graph, const std::shared_ptr<const TensorReader>& reader, const std::function<std::string(const std::string&)>& name_of, Duration timeout) {
  const StoredParameters stored{reader, name_of};
  const auto stages = graph.stages_in_order();
  for (const NodeId stage : stages) {   // of all, before any is changed
    if (auto ok = graph.node(stage).stage->call<&StageHost::expect_stored>(stored).get(timeout); !ok) return ok;
  }
  for (const NodeId stage : stages) {
    if (auto ok = graph.node(stage).stage->call<&StageHost::load_stored>(stored).get(timeout); !ok) return ok;
  }
  return {};
}

Result<std::map<std::string, std::string>> source_states(GraphCore& graph, Duration timeout) {
  std::map<std::string, std::string> out;
  for (int index = 0; index < static_cast<int>(graph.nodes.size()); ++index) {
    if (!graph.node({index}).source) continue;
    auto state = source_state(graph, {index}, timeout);
    if (!state) return fail(std::move(state.error()));
    out.emplace(graph.node({index}).name, std::move(*state));
  }
  return out;
}

Result<void> restore_sources(GraphCore& graph, const std::map<std::string, std::string>& states, Duration timeout) {
  std::map<std::string, NodeId> sources;
  for (int index = 0; index < static_cast<int>(graph.nodes.size()); ++index) {
    if (graph.node({index}).source) sources.emplace(graph.node({index}).name, NodeId{index});
  }
  for (const auto& [name, source] : sources) {
    if (!states.contains(name)) return fail(Errc::kMismatch, text("nothing was saved of source ", name));
  }
  for (const auto& [name, state] : states) {
    if (!sources.contains(name)) return fail(Errc::kMismatch, text("source ", name, " was saved; the graph has none of that name"));
  }
  for (const auto& [name, source] : sources) {
    if (auto ok = restore_source(graph, source, states.at(name), timeout); !ok) return ok;
  }
  return {};
}

std::uint64_t graph_seed(const GraphCore& graph) { return graph.options.seed; }

}  // namespace troupe::detail
