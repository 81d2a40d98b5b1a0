#include <algorithm>

#include <troupe/base/text.hpp>
#include "graph_core.hpp"

namespace troupe::detail {
namespace {

Result<NodeId> source_of(const GraphCore& graph, NodeId wanted) {
  if (wanted.index >= 0) {
    if (wanted.index < static_cast<int>(graph.nodes.size()) && graph.node(wanted).source) return wanted;
    return fail(Errc::kInvalidArgument, "StepOptions::source names no source of this graph");
  }
  NodeId found;
  for (int index = 0; index < static_cast<int>(graph.nodes.size()); ++index) {
    if (!graph.node({index}).source) continue;
    if (found.index >= 0) return fail(Errc::kInvalidArgument, "the graph has several sources: say which in StepOptions::source");
    found = {index};
  }
  if (found.index < 0) return fail(Errc::kInvalidArgument, "the graph has no source to take a batch from; use graph.source() or level B");
  return found;
}

std::vector<MicroRange> cut(std::int64_t samples, int micro_batches) {
  std::vector<MicroRange> out;
  for (int part = 0; part < micro_batches; ++part) {
    const Share share = share_of(samples, micro_batches, part);
    if (share.size > 0) out.push_back({share.begin, share.size, samples});
  }
  return out;
}

struct Begun {
  NodeId source;
  Ref<Output> batch;
  std::vector<MicroRange> ranges;
};

Result<Begun> begin(GraphCore& graph, const StepOptions& options) {
  if (options.micro_batches < 1) return fail(Errc::kInvalidArgument, text("micro_batches must be >= 1, got ", options.micro_batches));
  if (options.stop.stop_requested()) return fail(Errc::kClosed, "stop was requested before the step began; nothing was changed");
  if (!graph.checked) {
    if (auto checked = check_graph(graph); !checked) return fail(std::move(checked.error()));
  }
  const auto source = source_of(graph, options.source);
  if (!source) return fail(source.error());
  auto batch = next_batch(graph, *source, options.deadline);
  if (!batch) return fail(std::move(batch.error()));
  const std::int64_t samples = batch->value().samples;
  return Begun{*source, std::move(*batch), cut(samples, options.micro_batches)};
}

}  // namespace

Result<void> forward_stage(TapeCore& tape, NodeId stage, NodeId source, const Ref<Output>& batch, const MicroRange& range) {
  GraphCore& graph = *tape.graph;
  std::vector<ValueName> inputs;
  for (int port = 0; port < graph.node(stage).inputs; ++port) {
    const auto edge = graph.edge_into(stage, port, source);
    if (!edge) {
      return fail(Errc::kNoEdge, text("input ", port, " of stage ", graph.node(stage).name, " is fed neither by a stage nor by source ",
                                      graph.node(source).name, ": connect() it"));
    }
    if (edge->from == source) {
      inputs.push_back({source, edge->from_name, {batch}, range});
      continue;
    }
    const auto op = std::ranges::find_if(tape.ops, [&](const TapeOp& one) { return one.stage == edge->from; });
    inputs.push_back({edge->from, edge->from_name, op->outputs, range});
  }
  (void)submit_forward(tape, stage, std::move(inputs));
  return {};
}

Result<StepReport> run_step(const std::shared_ptr<GraphCore>& graph, const Optimizer& optimizer, const StepOptions& options) {
  if (!graph->open_tapes.empty()) {
    return fail(Errc::kInvalidArgument, text("tape ", *graph->open_tapes.begin(), " is open: join it by optimizer.step() before graph.step()"));
  }
  const TimePoint start = graph->runtime.clock().now();
  auto begun = begin(*graph, options);
  if (!begun) return fail(std::move(begun.error()));
  const auto stages = graph->stages_in_order();
  std::vector<std::shared_ptr<TapeCore>> tapes;
  for (std::size_t micro = 0; micro < begun->ranges.size(); ++micro) tapes.push_back(open_tape(graph, true));
  for (const Instruction& next : make_schedule(options.schedule, static_cast<int>(stages.size()), static_cast<int>(tapes.size()))) {
    TapeCore& tape = *tapes[static_cast<std::size_t>(next.micro_batch)];
    if (next.kind == Instruction::Kind::kBackward) {
      if (!tape.wrong) submit_backward_of(tape, static_cast<std::size_t>(next.stage));
      continue;
    }
    const auto forward = forward_stage(tape, stages[static_cast<std::size_t>(next.stage)], begun->source, begun->batch,
                                       begun->ranges[static_cast<std::size_t>(next.micro_batch)]);
    if (!forward && !tape.wrong) tape.wrong = forward.error();
  }
  begun->batch = {};  // the source's batch goes with its last reader
  auto join = submit_step(*optimizer.core(), std::move(tapes), options.keep_gradients);
  join->start = start;
  auto report = join_step(*join, options.deadline);
  if (report) ++optimizer.core()->step;
  return report;
}

Result<StepReport> run_evaluation(const std::shared_ptr<GraphCore>& graph, const StepOptions& options) {
  const TimePoint start = graph->runtime.clock().now();
  auto begun = begin(*graph, options);
  if (!begun) return fail(std::move(begun.error()));
  StepReport report;
  double sum = 0;
  const Deadline until = graph->runtime.clock().after(options.deadline);
  for (const MicroRange& range : begun->ranges) {
    auto tape = open_tape(graph, false);
    for (const NodeId stage : graph->stages_in_order()) {
      if (auto forward = forward_stage(*tape, stage, begun->source, begun->batch, range); !forward) return fail(std::move(forward.error()));
    }
    for (const TapeOp& op : tape->ops) {
      const Node& node = graph->node(op.stage);
      if (!node.makes_loss) continue;
      const auto axes = graph->sample_axes(op.stage);
      for (int rank = 0; rank < node.mesh.size(); ++rank) {
        const auto output = op.outputs[static_cast<std::size_t>(rank)].get(until.time() - graph->runtime.clock().now());
        if (!output) return fail(output.error());
        if (!counts_loss(node.mesh, rank, axes)) continue;
        const auto& loss = *static_cast<const Loss*>(output->get().object.get());
        sum += loss.sum.item<double>();
        report.valid += loss.valid;
      }
    }
    report.samples += range.samples;
  }
  report.loss = sum / static_cast<double>(std::max<std::int64_t>(report.valid, 1));
  report.seconds["step"] = std::chrono::duration<double>(graph->runtime.clock().now() - start).count();
  return report;
}

Result<Packed> fetch_value(GraphCore& graph, const ValueName& value, Duration timeout) {
  if (value.refs.empty()) return fail(Errc::kNoEdge, "the value names nothing: the call that should have made it was wrong");
  for (const auto& ref : value.refs) {
    if (auto waited = ref.get(timeout); !waited) return fail(std::move(waited.error()));
  }
  const auto edge = std::ranges::find_if(graph.edges, [&](const auto& one) { return one->from == value.node && one->from_name == value.port; });
  if (edge == graph.edges.end()) return fail(Errc::kNoEdge, "only values that some edge carries can be fetched");
  const auto* typed = dynamic_cast<const Edge<Packed>*>(edge->get());
  if (typed == nullptr) return fail(Errc::kInvalidArgument, "only packed values can be fetched");
  const PortLayout whole = replicate();
  const Mesh one;
  SliceContext context;
  context.layout = &whole;
  context.mesh = &one;
  context.range = value.range;
  context.edge = (*edge)->name;
  std::vector<const Packed*> sources;
  for (const auto& ref : value.refs) sources.push_back(typed->look(ref.value().object.get()));
  try {
    return gather_packed(sources, typed->from_batch(), context);
  } catch (...) {
    return fail(error_from_current_exception());
  }
}

}  // namespace troupe::detail
