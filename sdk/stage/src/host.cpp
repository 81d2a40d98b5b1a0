#include <troupe/stage/host.hpp>

#include <algorithm>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <troupe/base/text.hpp>
#include <troupe/parallel/gradients.hpp>
#include <troupe/parallel/optimizer.hpp>
#include "graph_core.hpp"
#include "host_state.hpp"

namespace troupe::detail {
namespace {

/// Adds the time of a scope to a phase.
class Timed {
 public:
  Timed(Clock& clock, double& seconds) : clock_(clock), seconds_(seconds), start_(clock.now()) {}
  ~Timed() { seconds_ += std::chrono::duration<double>(clock_.now() - start_).count(); }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  Clock& clock_;
  double& seconds_;
  TimePoint start_;
};

std::string show(const at::Tensor& value) { return text(value.toString(), " ", value.sizes()); }

[[noreturn]] void mismatch(std::string message) { throw Exception(Error{.code = Errc::kMismatch, .message = std::move(message)}); }

void check_arrived(const std::string& stage, const EdgeBase& edge, const InputValue& input, const PortSpec& spec) {
  const auto* typed = dynamic_cast<const Edge<Packed>*>(&edge);
  if (typed == nullptr) return;
  const at::Tensor& rows = static_cast<const Packed*>(input.value.get())->rows;
  bool fits = rows.scalar_type() == spec.dtype && rows.dim() == static_cast<std::int64_t>(spec.row_dims.size()) + 1;
  for (std::size_t i = 0; fits && i < spec.row_dims.size(); ++i) {
    fits = spec.row_dims[i] < 0 || spec.row_dims[i] == rows.size(static_cast<std::int64_t>(i) + 1);
  }
  if (fits) return;
  std::string dims = "rows";
  for (const auto dim : spec.row_dims) dims += dim < 0 ? ", any" : text(", ", dim);
  mismatch(text("stage ", stage, ", input ", edge.to_port, " (", spec.name, ") over edge ", edge.name, ": expected ",
                c10::toString(spec.dtype), " [", dims, "], got ", show(rows)));
}

void check_made(const std::string& stage, const ForwardResult& result) {
  for (std::size_t i = 0; i < result.packed.size(); ++i) {
    const Packed& out = result.packed[i];
    if (!out.rows.defined() || out.rows.dim() < 1) mismatch(text("stage ", stage, ", output ", i, ": rows are undefined"));
    if (out.rows.size(0) == rows_of(out.segments)) continue;
    mismatch(text("stage ", stage, ", output ", i, ": the segments tell ", rows_of(out.segments), " rows, the tensor is ", show(out.rows),
                  "; a merger returns merged(segments, factor)"));
  }
}

}  // namespace

StageHost::StageHost(Rank& rank, const StageSettings& settings, const ModuleFactory& make)
    : state_(std::make_unique<State>(rank, settings)) {
  state_->store.configure({.prefix = settings.name, .seed = settings.seed, .dtype = settings.dtype, .mesh = rank.mesh(), .rank = rank.index(), .device = settings.device});
  state_->module = make(rank);
  state_->input_ports = state_->module->input_ports();
}

StageHost::~StageHost() = default;

Output StageHost::forward(std::uint64_t call, const InputSet& inputs) {
  State& s = *state_;
  const Timed timed(s.rank.clock(), s.seconds["forward"]);
  const c10::AutoGradMode mode(inputs.keep_graph);
  Kept kept;
  std::int64_t elements = 0;
  for (std::size_t i = 0; i < inputs.inputs.size(); ++i) {
    const InputValue& input = inputs.inputs[i];
    if (i < s.input_ports.size()) check_arrived(s.settings.name, *inputs.edges[i], input, s.input_ports[i]);
    kept.leaves.push_back(input.leaf);
    kept.segments.push_back(input.segments);
    elements += input.elements;
    EdgeTraffic& traffic = s.traffic[inputs.edges[i]->name];
    traffic.referenced += input.traffic.referenced;
    traffic.copied += input.traffic.copied;
  }
  kept.graph = s.module->forward(inputs.inputs);
  check_made(s.settings.name, kept.graph);
  Output out{std::move(kept.graph.object), 0};
  if (!inputs.keep_graph) return out;
  s.elements += elements;
  if (kept.graph.loss.sum.defined()) {
    const at::Tensor sum = kept.graph.loss.sum.detach().to(at::kDouble);
    s.loss_sum = s.loss_sum.defined() ? s.loss_sum + sum : sum;
    s.valid += kept.graph.loss.valid;
  }
  s.kept.emplace(call, std::move(kept));
  return out;
}

BackwardResult StageHost::backward(std::uint64_t call, const GradientSet& gradients, const Token&) {
  State& s = *state_;
  const Timed timed(s.rank.clock(), s.seconds["backward"]);
  const auto found = s.kept.find(call);
  if (found == s.kept.end()) mismatch(text("stage ", s.settings.name, " holds no graph of forward ", call, "; was backward() called twice?"));
  Kept kept = std::move(found->second);
  s.kept.erase(found);
  std::vector<at::Tensor> by_output(kept.graph.packed.size());
  for (const EdgeGradient& gradient : gradients.gradients) {
    const auto port = static_cast<std::size_t>(gradient.edge->from_port);
    at::Tensor rows = adjoint_rows(kept.graph.packed[port].segments, s.rank.index(), gradient, s.traffic[gradient.edge->name + " (gradient)"]);
    by_output[port] = by_output[port].defined() ? by_output[port] + rows : std::move(rows);
  }
  std::vector<at::Tensor> roots;
  std::vector<at::Tensor> seeds;
  const auto seed = [&](const at::Tensor& root, at::Tensor gradient) {
    if (!root.requires_grad() || !gradient.defined()) return;
    roots.push_back(root);
    seeds.push_back(std::move(gradient));
  };
  for (std::size_t i = 0; i < by_output.size(); ++i) seed(kept.graph.packed[i].rows, by_output[i]);
  if (kept.graph.loss.sum.defined()) seed(kept.graph.loss.sum, at::ones_like(kept.graph.loss.sum));
  if (!roots.empty()) torch::autograd::backward(roots, seeds);
  BackwardResult out;
  for (std::size_t i = 0; i < kept.leaves.size(); ++i) {
    Packed gradient;
    const at::Tensor& leaf = kept.leaves[i];
    if (leaf.defined()) gradient.rows = leaf.grad().defined() ? leaf.grad() : at::zeros_like(leaf);
    gradient.segments = std::move(kept.segments[i]);
    out.inputs.push_back(std::move(gradient));
  }
  return out;
}

StepPart StageHost::reduce(const Token&, const std::vector<std::string>& sample_axes) {
  State& s = *state_;
  const Timed timed(s.rank.clock(), s.seconds["reduce"]);
  if (!s.adam) throw Exception(no_optimizer(s.settings.name));   // here, where nothing has been changed yet
  s.kept.clear();
  or_throw(sum_gradients(s.store, s.data_group()));
  StepPart out;
  out.norm_square = local_norm_square(s.store);
  if (s.loss_sum.defined() && counts_loss(s.rank.mesh(), s.rank.index(), sample_axes)) {
    out.loss_sum = s.loss_sum;
    out.valid = s.valid;
  }
  return out;
}

StepResult StageHost::apply(const StepSettings& settings, const StepTotals& totals) {
  State& s = *state_;
  StepResult out;
  {
    const Timed timed(s.rank.clock(), s.seconds["apply"]);
    out.totals = totals;
    out.skipped = s.elements == 0;
    const double count = static_cast<double>(std::max<std::int64_t>(totals.valid, 1));
    at::Tensor scale = at::full({}, 1.0 / count, at::kDouble);
    s.kept_gradients.clear();
    if (settings.keep_gradients) {
      for (const auto& entry : s.store.entries()) {
        s.kept_gradients.push_back(entry.tensor.grad().defined() ? entry.tensor.grad() / count : at::zeros_like(entry.tensor));
      }
    }
    if (s.options->clip > 0) scale = scale * (s.options->clip / (totals.norm + 1e-6)).clamp_max(1.0);
    if (!out.skipped) s.adam->step(settings.learning_rate_factor, scale);
  }
  out.seconds = s.seconds;
  out.traffic = s.traffic;
  s.forget();
  return out;
}

void StageHost::abandon() { state_->forget(); }

}  // namespace troupe::detail
