#include <troupe/testing/parity.hpp>

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include <troupe/base/text.hpp>

namespace troupe::testing {
namespace {

double largest(const at::Tensor& value) { return value.numel() == 0 ? 0.0 : value.abs().max().item<double>(); }

/// Keeps the worst error and the first one past the tolerance.
class Comparison {
 public:
  Comparison(std::string name, double tolerance, double floor) : name_(std::move(name)), tolerance_(tolerance), floor_(floor) {}

  void numbers(const std::string& what, double expected, double got) {
    note(what, std::abs(expected - got) / std::max(std::abs(expected), floor_), text("expected ", expected, ", got ", got));
  }

  void tensors(const std::string& kind, const std::map<std::string, at::Tensor>& expected, const std::map<std::string, at::Tensor>& got) {
    if (expected.size() != got.size()) return note(kind, INFINITY, text("expected ", expected.size(), " tensors, got ", got.size()));
    for (const auto& [key, tensor] : expected) {
      const auto found = got.find(key);
      if (found == got.end() || found->second.sizes() != tensor.sizes()) return note(kind + " " + key, INFINITY, "missing, or of another shape");
      if (tensor.numel() == 0) continue;
      const double error = largest(tensor - found->second) / std::max(largest(tensor), floor_);
      note(kind + " " + key, error, text("largest expected ", largest(tensor), ", largest difference ", largest(tensor - found->second)));
    }
  }

  [[nodiscard]] ParityReport report() && { return std::move(report_); }

 private:
  void note(const std::string& what, double error, const std::string& detail) {
    const std::string where = name_ + ": " + what;
    if (!(error <= report_.worst)) {  // NaN counts as worst
      report_.worst = error;
      report_.where = where;
    }
    if (error <= tolerance_ || !report_.message.empty()) return;
    report_.ok = false;
    report_.message = text(where, " differs from the serial twin by ", error, " (allowed ", tolerance_, "): ", detail);
  }

  std::string name_;
  double tolerance_;
  double floor_;
  ParityReport report_{.ok = true};
};

bool same(const std::map<std::string, at::Tensor>& a, const std::map<std::string, at::Tensor>& b) {
  return a.size() == b.size() && std::ranges::all_of(a, [&](const auto& entry) {
    const auto found = b.find(entry.first);
    return found != b.end() && at::equal(entry.second, found->second);
  });
}

}  // namespace

ParityReport compare(const ParityRun& serial, const ParityRun& run, const std::string& name, double tolerance) {
  double largest_gradient = 0;
  for (const auto& [key, gradient] : serial.first_gradients) largest_gradient = std::max(largest_gradient, largest(gradient));
  Comparison comparison(name, tolerance, std::max(1e-6 * largest_gradient, 1e-300));
  for (std::size_t step = 0; step < serial.losses.size(); ++step) {
    comparison.numbers(text("loss of step ", step + 1), serial.losses[step], run.losses.at(step));
    comparison.numbers(text("gradient norm of step ", step + 1), serial.norms[step], run.norms.at(step));
  }
  comparison.tensors("first gradient of", serial.first_gradients, run.first_gradients);
  comparison.tensors("last gradient of", serial.last_gradients, run.last_gradients);
  comparison.tensors("parameter", serial.parameters, run.parameters);
  return std::move(comparison).report();
}

bool identical(const ParityRun& a, const ParityRun& b) {
  return a.losses == b.losses && a.norms == b.norms && same(a.first_gradients, b.first_gradients) && same(a.last_gradients, b.last_gradients) &&
         same(a.parameters, b.parameters);
}

namespace detail {

Loss ProbeLoss::forward(const Packed& rows) {
  std::vector<double> weights;
  for (const Segment& piece : rows.segments) {
    for (std::int64_t row = 0; row < piece.rows; ++row) weights.push_back(std::sin(1.0 + 0.37 * static_cast<double>(piece.id) + 0.11 * static_cast<double>(piece.first + row)));
  }
  const at::Tensor by_row = at::tensor(weights, at::kDouble).reshape({-1, 1});
  const at::Tensor flat = rows.rows.reshape({rows.rows.size(0), rows.rows.numel() / std::max<std::int64_t>(rows.rows.size(0), 1)});
  const at::Tensor by_column = at::arange(flat.size(1), at::kDouble).mul(0.7).cos().add(1.5);
  return {flat.mul(by_row).mul(by_column).sin().sum(), static_cast<std::int64_t>(weights.size())};
}

Result<ParityRun> run_steps(Graph& graph, const ParityOptions& options, const std::function<Result<std::map<std::string, at::Tensor>>(bool)>& tensors) {
  if (auto checked = graph.check(); !checked) return fail(std::move(checked.error()));
  auto optimizer = graph.optimizer({.groups = {{"*", options.learning_rate, 0.01}}});
  if (!optimizer) return fail(std::move(optimizer.error()));
  ParityRun run;
  for (int step = 0; step < options.steps; ++step) {
    const auto report = graph.step(*optimizer, {.micro_batches = options.micro_batches, .deadline = options.timeout, .keep_gradients = true});
    if (!report) return fail(report.error());
    run.losses.push_back(report->loss);
    run.norms.push_back(report->grad_norm);
    if (step > 0 && step + 1 < options.steps) continue;
    auto gradients = tensors(true);
    if (!gradients) return fail(std::move(gradients.error()));
    if (step == 0) run.first_gradients = *gradients;
    run.last_gradients = std::move(*gradients);
  }
  auto parameters = tensors(false);
  if (!parameters) return fail(std::move(parameters.error()));
  run.parameters = std::move(*parameters);
  return run;
}

}  // namespace detail
}  // namespace troupe::testing
