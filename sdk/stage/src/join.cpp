#include <algorithm>
#include <cmath>
#include <numbers>

#include <ATen/ATen.h>

#include <troupe/base/text.hpp>
#include <troupe/parallel/schedule.hpp>
#include "graph_core.hpp"

namespace troupe {

namespace detail {
namespace {

using Parts = std::vector<Ref<StepPart>>;

/// Submits the reduce of every stage after the backwards of all tapes; parts in (stage, rank) order.
Parts submit_reduce(GraphCore& graph, const std::vector<NodeId>& stages, const std::vector<std::shared_ptr<TapeCore>>& tapes) {
  Parts parts;
  for (const NodeId stage : stages) {
    Gather<Token, BackwardResult> after{{}, [](std::span<const Ref<BackwardResult>>, int) { return Token{}; }};
    for (const auto& tape : tapes) {
      for (const TapeOp& op : tape->ops) {
        // a failure anywhere in the step must keep every stage from updating
        after.sources.insert(after.sources.end(), op.backward.begin(), op.backward.end());
      }
    }
    auto refs = graph.node(stage).stage->call<&StageHost::reduce>(std::move(after), graph.sample_axes(stage)).refs();
    parts.insert(parts.end(), refs.begin(), refs.end());
  }
  return parts;
}

/// Sums in (stage, rank) order, so that every rank of every pool gets the same bits (NUM-8).
StepTotals total(std::span<const Ref<StepPart>> parts, int) {
  StepTotals out;
  at::Tensor squares = at::zeros({}, at::kDouble);
  at::Tensor loss = at::zeros({}, at::kDouble);
  for (const auto& part : parts) {
    squares = squares + part.value().norm_square;
    if (part.value().loss_sum.defined()) loss = loss + part.value().loss_sum;
    out.valid += part.value().valid;
  }
  const double count = static_cast<double>(std::max<std::int64_t>(out.valid, 1));  // all masked: loss 0, gradients 0
  out.norm = squares.sqrt() / count;
  out.loss = loss / count;
  return out;
}

std::optional<Error> wrong_tapes(const GraphCore& graph, const std::vector<std::shared_ptr<TapeCore>>& tapes) {
  std::set<std::uint64_t> given;
  for (const auto& tape : tapes) {
    if (tape->wrong) return tape->wrong;
    given.insert(tape->id);
  }
  for (const std::uint64_t open : graph.open_tapes) {
    if (given.contains(open)) continue;
    return Error{.code = Errc::kInvalidArgument,
                 .message = text("tape ", open, " of the graph is open but was left out of the optimizer's step; its samples would be lost")};
  }
  return std::nullopt;
}

double learning_rate_factor(const OptimizerOptions& options, std::int64_t step) {
  return warmup_cosine({.warmup_steps = options.warmup_steps, .total_steps = options.total_steps, .final_ratio = options.final_ratio}, step);
}

void add_result(StepReport& report, const std::string& stage, const StepResult& result) {
  for (const auto& [phase, seconds] : result.seconds) {
    double& longest = report.seconds[stage + "." + phase];
    longest = std::max(longest, seconds);
  }
  for (const auto& [edge, traffic] : result.traffic) {
    report.bytes_by_edge[edge].referenced += traffic.referenced;
    report.bytes_by_edge[edge].copied += traffic.copied;
  }
}

void add_peaks(StepReport& report, const GraphCore& graph, const std::vector<NodeId>& stages) {
  for (const auto& pool : graph.runtime.status().pools) {
    for (const NodeId stage : stages) {
      if (graph.node(stage).name != pool.name) continue;
      for (const auto& rank : pool.ranks) {
        if (rank.peak_bytes > 0) report.peak_bytes[pool.name].push_back(rank.peak_bytes);
      }
    }
  }
}

}  // namespace

std::shared_ptr<StepJoin> submit_step(const OptimizerCore& optimizer, std::vector<std::shared_ptr<TapeCore>> tapes, bool keep_gradients) {
  auto join = std::make_shared<StepJoin>();
  join->graph = optimizer.graph;
  GraphCore& graph = *optimizer.graph;
  join->start = graph.runtime.clock().now();
  join->stages = graph.stages_in_order();
  join->wrong = wrong_tapes(graph, tapes);
  for (const auto& tape : tapes) graph.open_tapes.erase(tape->id);
  if (join->wrong) return join;
  const Parts parts = submit_reduce(graph, join->stages, tapes);
  StepSettings settings;
  settings.step = optimizer.step + 1;
  settings.learning_rate_factor = learning_rate_factor(optimizer.options, settings.step);
  settings.keep_gradients = keep_gradients;
  for (const NodeId stage : join->stages) {
    join->results.push_back(graph.node(stage).stage->call<&StageHost::apply>(settings, Gather<StepTotals, StepPart>{parts, total}).refs());
  }
  join->report.step = settings.step;
  join->report.learning_rate = optimizer.options.groups.front().learning_rate * settings.learning_rate_factor;
  for (const auto& tape : tapes) join->report.samples += tape->range.samples;
  return join;
}

void abandon_all(GraphCore& graph, Duration timeout) {
  std::vector<PendingAll<std::monostate>> pending;
  for (const NodeId stage : graph.stages_in_order()) pending.push_back(graph.node(stage).stage->call<&StageHost::abandon>());
  for (auto& one : pending) (void)one.get(timeout);  // a stage that can't be reached keeps its own error
}

Result<StepReport> join_step(StepJoin& join, Duration timeout) {
  GraphCore& graph = *join.graph;
  Clock& clock = graph.runtime.clock();
  const Deadline until = clock.after(timeout);
  std::optional<Error> failed = join.wrong;
  for (std::size_t s = 0; s < join.results.size() && !failed; ++s) {
    const std::string& name = graph.node(join.stages[s]).name;
    for (const auto& ref : join.results[s]) {
      const auto result = ref.get(until.is_never() ? timeout : until.time() - clock.now());
      if (!result) {
        failed = result.error();
        break;
      }
      add_result(join.report, name, result->get());
      if (result->get().skipped && (join.report.skipped_stages.empty() || join.report.skipped_stages.back() != name)) {
        join.report.skipped_stages.push_back(name);
      }
    }
  }
  if (failed) {
    abandon_all(graph, std::chrono::seconds(5));
    return fail(std::move(*failed));
  }
  const StepTotals& totals = join.results.front().front().value().totals;
  join.report.loss = totals.loss.item<double>();
  join.report.grad_norm = totals.norm.item<double>();
  join.report.valid = totals.valid;
  add_peaks(join.report, graph, join.stages);
  join.report.seconds["step"] = std::chrono::duration<double>(clock.now() - join.start).count();
  return std::move(join.report);
}

}  // namespace detail

Result<StepReport> PendingStep::get(Duration deadline) { return detail::join_step(*join_, deadline); }

PendingStep Optimizer::step(std::vector<Tape>& tapes) const {
  std::vector<std::shared_ptr<detail::TapeCore>> cores;
  for (const Tape& tape : tapes) cores.push_back(tape.core());
  auto join = detail::submit_step(*core_, std::move(cores), false);
  if (!join->wrong) ++core_->step;
  tapes.clear();
  return PendingStep(std::move(join));
}

}  // namespace troupe
