#include "graph_core.hpp"

#include <algorithm>

#include <troupe/base/text.hpp>

namespace troupe::detail {
namespace {

Error wrong_argument(std::string message) { return Error{.code = Errc::kInvalidArgument, .message = std::move(message)}; }

Result<void> check_name(const GraphCore& graph, const std::string& name) {
  if (name.empty()) return fail(wrong_argument("a stage or source needs a name: it is the prefix of its parameters"));
  for (const Node& node : graph.nodes) {
    if (node.name == name) return fail(wrong_argument(text("two nodes of the graph are named '", name, "'; names must differ")));
  }
  return {};
}

PoolOptions pool_options_of(const StageOptions& options) {
  PoolOptions out;
  out.name = options.name;
  out.mesh = options.mesh;
  out.per_rank = options.per_rank;
  out.share_devices_with = options.share_devices_with;
  out.queue_deadline = options.queue_deadline;
  out.collective_deadline = options.collective_deadline;
  return out;
}

}  // namespace

std::shared_ptr<GraphCore> make_graph(Runtime runtime, GraphOptions options) {
  return std::make_shared<GraphCore>(std::move(runtime), options);
}

Result<Pool<StageHost>> make_stage_pool(const Runtime& runtime, PoolOptions options, const StageSettings& settings, const ModuleFactory& factory, Duration deadline) {
  auto pool = runtime.pool<StageHost>(std::move(options), settings, factory);
  if (!pool) return pool;
  if (auto ready = pool->ready(deadline); !ready) {
    pool->close();
    return fail(std::move(ready.error()));
  }
  return pool;
}

Result<NodeId> add_stage(GraphCore& graph, StageOptions options, ModuleFactory factory, int inputs, bool makes_loss) {
  if (auto named = check_name(graph, options.name); !named) return fail(std::move(named.error()));
  StageSettings settings;
  settings.name = options.name;
  settings.seed = graph.options.seed;
  settings.dtype = options.dtype;
  settings.data_axes = options.data_axes;
  auto pool = make_stage_pool(graph.runtime, pool_options_of(options), settings, factory, options.construct_deadline);
  if (!pool) return fail(std::move(pool.error()));
  Node node;
  node.name = options.name;
  node.mesh = options.mesh;
  node.stage = std::move(*pool);
  node.options = std::move(options);
  node.settings = std::move(settings);
  node.factory = std::move(factory);
  node.inputs = inputs;
  node.makes_loss = makes_loss;
  graph.nodes.push_back(std::move(node));
  graph.checked = false;
  return NodeId{static_cast<int>(graph.nodes.size()) - 1};
}

Result<NodeId> add_source(GraphCore& graph, SourceOptions options, SourceFactory factory) {
  if (auto named = check_name(graph, options.name); !named) return fail(std::move(named.error()));
  if (options.prefetch < 1) return fail(wrong_argument(text("source ", options.name, ": prefetch must be >= 1, got ", options.prefetch)));
  PoolOptions pool_options;
  pool_options.name = options.name;
  pool_options.per_rank = options.per_rank;
  auto pool = graph.runtime.pool<SourceHost>(std::move(pool_options), std::move(factory));
  if (!pool) return fail(std::move(pool.error()));
  if (auto ready = pool->ready(std::chrono::minutes(5)); !ready) {
    pool->close();
    return fail(std::move(ready.error()));
  }
  Node node;
  node.name = options.name;
  node.source = std::move(*pool);
  node.prefetch = options.prefetch;
  graph.nodes.push_back(std::move(node));
  graph.checked = false;
  return NodeId{static_cast<int>(graph.nodes.size()) - 1};
}

void add_edge(GraphCore& graph, std::shared_ptr<EdgeBase> edge) {
  const Node& from = graph.node(edge->from);
  const Node& to = graph.node(edge->to);
  edge->name = text(from.name, from.source || edge->from_name.empty() ? "" : ".", from.source ? "." : "", edge->from_name, " -> ",
                    to.name, ".in", edge->to_port);
  edge->mesh = to.mesh;
  edge->check_replicas = graph.runtime.options().check_arguments;
  edge->counters = graph.runtime.transport().counters;
  graph.checked = false;
  for (const auto& other : graph.edges) {
    if (other->to == edge->to && other->to_port == edge->to_port && other->from == edge->from && !graph.wrong) {
      graph.wrong = wrong_argument(text("input ", edge->to_port, " of ", to.name, " is connected twice from ", from.name));
    }
  }
  graph.edges.push_back(std::move(edge));
}

std::vector<NodeId> GraphCore::stages_in_order() const {
  std::vector<NodeId> out;
  std::set<int> done;
  for (std::size_t round = 0; round < nodes.size(); ++round) {
    for (int index = 0; index < static_cast<int>(nodes.size()); ++index) {
      if (!node({index}).stage || done.contains(index)) continue;
      const bool ready = std::ranges::all_of(edges, [&](const auto& edge) {
        return edge->to.index != index || !node(edge->from).stage || done.contains(edge->from.index);
      });
      if (!ready) continue;
      done.insert(index);
      out.push_back({index});
    }
  }
  return out;
}

std::shared_ptr<EdgeBase> GraphCore::edge_into(NodeId to, int port, NodeId source) const {
  for (const auto& edge : edges) {
    if (edge->to == to && edge->to_port == port && (node(edge->from).stage || edge->from == source)) return edge;
  }
  return nullptr;
}

std::vector<std::string> GraphCore::sample_axes(NodeId stage) const {
  std::vector<std::string> out;
  for (const auto& edge : edges) {
    if (!(edge->to == stage)) continue;
    for (const auto& axis : edge->layout.sample_axes) {
      if (std::ranges::find(out, axis) == out.end()) out.push_back(axis);
    }
  }
  return out;
}

const Pool<StageHost>& stage_pool(const GraphCore& graph, NodeId stage) { return *graph.node(stage).stage; }
const std::string& node_name(const GraphCore& graph, NodeId node) { return graph.node(node).name; }

namespace {

void ask(Node& node) { node.ahead.push_back(node.source->at<&SourceHost::next>(0).ref()); }

/// Where the source started, which it can only say when it has state() and restore().
Result<std::string> start_of(const Node& node, Duration timeout) {
  auto start = node.source->at<&SourceHost::start>(0).get(timeout);
  if (!start) return fail(std::move(start.error()));
  if (*start) return std::move(**start);
  return fail(Errc::kInvalidArgument, text("source ", node.name, " can't say where it stands: give its class `std::string state() const` and `void restore(const std::string&)`"),
              {.pool = node.name});
}

}  // namespace

Result<std::string> source_state(GraphCore& graph, NodeId source, Duration timeout) {
  const Node& node = graph.node(source);
  if (node.position && !node.position->empty()) return *node.position;
  auto start = start_of(node, timeout);
  if (!start || !node.position) return start;
  return *node.position;   // it says "" after a batch
}

Result<void> restore_source(GraphCore& graph, NodeId source, const std::string& state, Duration timeout) {
  Node& node = graph.node(source);
  if (auto can = start_of(node, timeout); !can) return fail(std::move(can.error()));
  node.ahead.clear();   // made before the restore, which is behind them in the queue
  if (auto ok = node.source->at<&SourceHost::restore>(0, state).get(timeout); !ok) return fail(std::move(ok.error()));
  node.position = state;
  return {};
}

Result<Ref<Output>> put_batch(GraphCore& graph, NodeId source, Output batch) {
  if (batch.samples < 1) return fail(Errc::kBadData, text("a batch put for source ", graph.node(source).name, " has no samples"));
  return graph.runtime.put(std::move(batch));
}

Result<Ref<Output>> peek_batch(GraphCore& graph, NodeId source, Duration timeout) {
  Node& node = graph.node(source);
  if (node.ahead.empty()) ask(node);
  const Ref<Output> batch = node.ahead.front();
  if (auto waited = batch.get(timeout); !waited) return fail(std::move(waited.error()));
  return batch;
}

Result<Ref<Output>> next_batch(GraphCore& graph, NodeId source, Duration timeout) {
  Node& node = graph.node(source);
  if (node.ahead.empty()) ask(node);
  const Ref<Output> batch = node.ahead.front();
  while (static_cast<int>(node.ahead.size()) <= node.prefetch) ask(node);
  if (auto waited = batch.get(timeout); !waited) {
    // a batch that failed is gone; one that is late will still come
    if (waited.error().code != Errc::kTimeout) node.ahead.pop_front();
    return fail(std::move(waited.error()));
  }
  node.ahead.pop_front();
  node.position = batch.value().state;
  if (!batch.value().object) return fail(Errc::kEndOfData, text("source ", node.name, " has no further batch"), {.pool = node.name});
  if (batch.value().samples < 1) {
    return fail(Errc::kBadData, text("source ", node.name, " made a batch without samples; return std::nullopt at the end"), {.pool = node.name});
  }
  return batch;
}

}  // namespace troupe::detail
