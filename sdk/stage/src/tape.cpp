#include <algorithm>

#include <troupe/base/text.hpp>
#include "graph_core.hpp"

namespace troupe::detail {
namespace {

struct InputPlan {
  std::shared_ptr<EdgeBase> edge;
  std::size_t first = 0;    ///< Of its sources among the Gather's.
  std::size_t count = 0;
};

/// All inputs of a forward as one argument, made on the receiving rank.
Gather<InputSet, Output> gather_inputs(const TapeOp& op, const MicroRange& range, bool keep_graph) {
  Gather<InputSet, Output> out;
  std::vector<InputPlan> plans;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    plans.push_back({op.edges[i], out.sources.size(), op.inputs[i].refs.size()});
    out.sources.insert(out.sources.end(), op.inputs[i].refs.begin(), op.inputs[i].refs.end());
  }
  out.combine = [plans = std::move(plans), range, keep_graph](std::span<const Ref<Output>> sources, int rank) {
    InputSet set;
    set.keep_graph = keep_graph;
    for (const auto& plan : plans) {
      set.inputs.push_back(plan.edge->gather(sources.subspan(plan.first, plan.count), range, rank));
      set.edges.push_back(plan.edge);
    }
    return set;
  };
  return out;
}

/// Where one gradient of an op's output comes from.
struct GradientPlan {
  std::shared_ptr<EdgeBase> edge;
  std::size_t first = 0;
  std::size_t count = 0;
};

Gather<GradientSet, BackwardResult> gather_gradients(const TapeCore& tape, const TapeOp& op) {
  Gather<GradientSet, BackwardResult> out;
  std::vector<GradientPlan> plans;
  for (const TapeOp& consumer : tape.ops) {
    for (std::size_t i = 0; i < consumer.inputs.size(); ++i) {
      const bool consumes = !consumer.inputs[i].refs.empty() && consumer.inputs[i].refs.front().call() == op.outputs.front().call();
      if (!consumes || !consumer.edges[i]->carries_gradient() || consumer.backward.empty()) continue;
      plans.push_back({consumer.edges[i], out.sources.size(), consumer.backward.size()});
      out.sources.insert(out.sources.end(), consumer.backward.begin(), consumer.backward.end());
    }
  }
  out.combine = [plans = std::move(plans)](std::span<const Ref<BackwardResult>> sources, int) {
    GradientSet set;
    for (const auto& plan : plans) {
      EdgeGradient gradient;
      gradient.edge = plan.edge;
      for (const auto& source : sources.subspan(plan.first, plan.count)) {
        gradient.by_rank.push_back(source.value().inputs[static_cast<std::size_t>(plan.edge->to_port)]);
      }
      set.gradients.push_back(std::move(gradient));
    }
    return set;
  };
  return out;
}

void note(TapeCore& tape, Errc code, std::string message) {
  if (!tape.wrong) tape.wrong = Error{.code = code, .message = std::move(message)};
}

}  // namespace

std::shared_ptr<TapeCore> open_tape(const std::shared_ptr<GraphCore>& graph, bool keep_graph) {
  auto tape = std::make_shared<TapeCore>();
  tape->graph = graph.get();
  tape->keep = graph;
  tape->id = graph->next_tape++;
  tape->keep_graph = keep_graph;
  if (keep_graph) graph->open_tapes.insert(tape->id);
  return tape;
}

Tape make_tape(const std::shared_ptr<GraphCore>& graph, bool keep_graph) { return Tape(open_tape(graph, keep_graph)); }

ValueName submit_forward(TapeCore& tape, NodeId stage, std::vector<ValueName> inputs) {
  GraphCore& graph = *tape.graph;
  Node& node = graph.node(stage);
  TapeOp op;
  op.stage = stage;
  op.call = graph.next_call++;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto found = std::ranges::find_if(graph.edges, [&](const auto& edge) {
      return edge->from == inputs[i].node && edge->from_name == inputs[i].port && edge->to == stage && edge->to_port == static_cast<int>(i);
    });
    if (found == graph.edges.end()) {
      note(tape, Errc::kNoEdge, text("input ", i, " of stage ", node.name, " got '", inputs[i].port, "' of ",
                                     graph.node(inputs[i].node).name, ", which no connect() feeds it from"));
      return {stage, "", {}, {}};
    }
    if (inputs[i].refs.empty()) return {stage, "", {}, {}};  // an earlier wrong call: noted there
    op.edges.push_back(*found);
  }
  if (!inputs.empty()) tape.range = inputs.front().range;
  op.inputs = std::move(inputs);
  op.outputs = node.stage->call<&StageHost::forward>(op.call, gather_inputs(op, tape.range, tape.keep_graph)).refs();
  ValueName out{stage, "", op.outputs, tape.range};
  tape.ops.push_back(std::move(op));
  return out;
}

void submit_backward_of(TapeCore& tape, std::size_t index) {
  TapeOp& op = tape.ops[index];
  Node& node = tape.graph->node(op.stage);
  auto gradients = gather_gradients(tape, op);
  if (!node.makes_loss && gradients.sources.empty()) return;  // nothing flows back to it
  // its own forward is a dependency: a backward after a failed forward fails with that cause
  Gather<Token, Output> after{op.outputs, [](std::span<const Ref<Output>>, int) { return Token{}; }};
  op.backward = node.stage->call<&StageHost::backward>(op.call, std::move(gradients), std::move(after)).refs();
}

void submit_backward(TapeCore& tape, const ValueName& from) {
  if (from.refs.empty()) return;  // noted where it was made
  std::vector<bool> reached(tape.ops.size(), false);
  for (std::size_t index = tape.ops.size(); index-- > 0;) {
    TapeOp& op = tape.ops[index];
    if (op.outputs.front().call() == from.refs.front().call()) reached[index] = true;
    if (!reached[index]) continue;
    if (!op.backward.empty()) return note(tape, Errc::kInvalidArgument, text("backward() ran twice through stage ", tape.graph->node(op.stage).name));
    submit_backward_of(tape, index);
    for (const auto& input : op.inputs) {
      for (std::size_t earlier = 0; earlier < index; ++earlier) {
        if (tape.ops[earlier].outputs.front().call() == input.refs.front().call()) reached[earlier] = true;
      }
    }
  }
}

}  // namespace troupe::detail
