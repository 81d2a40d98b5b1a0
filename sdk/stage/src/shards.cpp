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

}  // namespace troupe::detail
