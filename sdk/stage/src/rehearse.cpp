#include <algorithm>

#include <troupe/base/log.hpp>
#include <troupe/base/text.hpp>
#include <troupe/torch/meta_scope.hpp>
#include <troupe/torch/rank_scope.hpp>
#include "graph_core.hpp"

namespace troupe::detail {
namespace {

constexpr Duration kPatience = std::chrono::minutes(10);
constexpr Duration kMeeting = std::chrono::minutes(1);   // nothing is computed, so nobody is late

/// Around the ranks that have no data.
class WithoutData final : public RankEnvironment {
 public:
  [[nodiscard]] std::unique_ptr<Scope> enter(const Rank&) override { return std::make_unique<Inside>(); }

 private:
  struct Inside final : Scope {
    RankThreadScope thread{1};
    MetaScope meta;
  };
};

/// Why the rehearsal ended before its end, which is no fault of the graph.
struct Unable {
  std::string why;
  LogLevel level = LogLevel::kWarning;
};
using Outcome = tl::expected<void, std::variant<Unable, Error>>;

tl::unexpected<std::variant<Unable, Error>> unable(std::string why, LogLevel level = LogLevel::kWarning) {
  return tl::unexpected<std::variant<Unable, Error>>(Unable{std::move(why), level});
}

/// LibTorch's messages end in a stack trace.
std::string first_lines(const std::string& message) { return message.substr(0, message.find("\nException raised from")); }

tl::unexpected<std::variant<Unable, Error>> failed(const Node& node, const char* phase, const Error& error) {
  const std::string what = first_lines(error.message);
  const bool is_late = error.code == Errc::kTimeout && error.origin.rank < 0;   // we, not a rank in a collective
  if (error.code == Errc::kUnavailable || is_late) return unable(text(phase, " of stage ", node.name, ": ", what));
  Error out = error;
  out.message = text("stage ", node.name, ", ", phase, " on tensors without data (NUM-6): ", what);
  out.origin.pool = node.name;
  return tl::unexpected<std::variant<Unable, Error>>(std::move(out));
}

/// The same stages and edges; the ranks' tensors have no data.
tl::expected<std::shared_ptr<GraphCore>, Unable> understudy(const GraphCore& graph) {
  auto out = std::make_shared<GraphCore>(graph.runtime, graph.options);
  const auto environment = std::make_shared<WithoutData>();
  for (const Node& node : graph.nodes) {
    Node twin;
    twin.name = node.name;
    twin.mesh = node.mesh;
    twin.options = node.options;
    twin.inputs = node.inputs;
    twin.makes_loss = node.makes_loss;
    twin.source = node.source;   // for its place in the order only: nothing is asked of it
    if (node.stage) {
      StageSettings settings = node.settings;
      settings.device = c10::DeviceType::Meta;
      PoolOptions options;
      options.name = text(node.name, " (check)");
      options.mesh = node.mesh;
      options.queue_deadline = node.options.queue_deadline;
      options.collective_deadline = std::min(node.options.collective_deadline, kMeeting);
      options.environment = environment;
      auto pool = make_stage_pool(graph.runtime, std::move(options), settings, node.factory, node.options.construct_deadline);
      if (!pool) return tl::unexpected(Unable{text("constructor of stage ", node.name, ": ", first_lines(pool.error().message))});
      twin.stage = std::move(*pool);
    }
    out->nodes.push_back(std::move(twin));
  }
  for (const auto& edge : graph.edges) {
    auto twin = edge->clone();
    twin->shapes_only = true;
    twin->check_replicas = false;   // compares values
    twin->counters = nullptr;
    out->edges.push_back(std::move(twin));
  }
  return out;
}

template <class T>
Outcome wait_for_all(const Node& node, const char* phase, const std::vector<Ref<T>>& refs) {
  for (const auto& ref : refs) {
    if (auto done = ref.get(kPatience); !done) return failed(node, phase, done.error());
  }
  return {};
}

/// Forward, backward, sums of gradients, update.
Outcome run_through(const std::shared_ptr<GraphCore>& graph, NodeId source, const Ref<Output>& batch) {
  const std::int64_t samples = batch.value().samples;
  const auto tape = open_tape(graph, true);
  for (const NodeId stage : graph->stages_in_order()) {
    if (auto ok = forward_stage(*tape, stage, source, batch, {0, samples, samples}); !ok) return failed(graph->node(stage), "forward", ok.error());
  }
  for (std::size_t index = tape->ops.size(); index-- > 0;) submit_backward_of(*tape, index);
  for (const TapeOp& op : tape->ops) {
    if (auto ok = wait_for_all(graph->node(op.stage), "forward", op.outputs); !ok) return ok;
  }
  for (std::size_t index = tape->ops.size(); index-- > 0;) {
    const TapeOp& op = tape->ops[index];
    if (auto ok = wait_for_all(graph->node(op.stage), "backward", op.backward); !ok) return ok;
  }
  const OptimizerOptions options{.clip = 1};
  std::vector<NodeId> stages = graph->stages_in_order();
  for (const NodeId stage : stages) {
    if (auto set = graph->node(stage).stage->call<&StageHost::set_optimizer>(options).get(kPatience); !set) return failed(graph->node(stage), "update", set.error());
  }
  const auto join = submit_step(OptimizerCore{graph, options, 0}, {tape}, false);
  for (std::size_t i = 0; i < join->results.size(); ++i) {
    if (auto ok = wait_for_all(graph->node(join->stages[i]), "update", join->results[i]); !ok) return ok;
  }
  return {};
}

/// Whether a step can be run on batches of `source` alone.
bool feeds_all(const GraphCore& graph, NodeId source) {
  return std::ranges::all_of(graph.stages_in_order(), [&](NodeId stage) {
    for (int port = 0; port < graph.node(stage).inputs; ++port) {
      if (!graph.edge_into(stage, port, source)) return false;
    }
    return true;
  });
}

Outcome rehearse_all(GraphCore& graph) {
  std::shared_ptr<GraphCore> twin;
  bool any = false;
  for (int index = 0; index < static_cast<int>(graph.nodes.size()); ++index) {
    const NodeId source{index};
    if (!graph.node(source).source || !feeds_all(graph, source)) continue;
    any = true;
    const auto batch = peek_batch(graph, source, kPatience);
    const bool is_late = !batch && batch.error().code == Errc::kTimeout;
    if (!batch || !batch->value().object || batch->value().samples < 1) {   // what is wrong with it, the step says
      return unable(text("source ", graph.node(source).name, " has no first batch", is_late ? " yet" : ""), is_late ? LogLevel::kWarning : LogLevel::kInfo);
    }
    if (!twin) {
      auto made = understudy(graph);
      if (!made) return unable(std::move(made.error().why));
      twin = std::move(*made);
    }
    if (auto ok = run_through(twin, source, *batch); !ok) return ok;
  }
  if (!any) return unable("no source alone feeds every input", LogLevel::kInfo);
  return {};
}

}  // namespace

Result<void> rehearse(GraphCore& graph) {
  auto outcome = rehearse_all(graph);
  if (outcome) return {};
  if (auto* error = std::get_if<Error>(&outcome.error())) return fail(std::move(*error));
  const Unable& unable = std::get<Unable>(outcome.error());
  const std::string line = text("graph.check() could not run the whole step on tensors without data; all else is checked. ", unable.why);
  Log& log = *graph.runtime.transport().log;
  if (unable.level == LogLevel::kInfo) {
    log.info(line);
  } else {
    log.warn_once(line, line);
  }
  return {};
}

}  // namespace troupe::detail
