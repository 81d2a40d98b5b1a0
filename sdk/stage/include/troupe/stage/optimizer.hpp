#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/actors/pending.hpp>
#include <troupe/parallel/tensor_reader.hpp>
#include <troupe/stage/report.hpp>

namespace troupe {

namespace detail {
class GraphCore;
struct OptimizerCore;
struct StepJoin;
}  // namespace detail

class Tape;

/// Parameters whose full name ("vision.blocks.0.qkv.weight") matches `pattern` ('*' any run of
/// characters) learn at `learning_rate`. The first group that matches counts.
struct ParameterGroup {
  std::string pattern;
  double learning_rate = 1e-3;
  double weight_decay = 0.01;
  static auto troupe_fields(auto& self) { return std::tie(self.pattern, self.learning_rate, self.weight_decay); }
};

/// AdamW over all stages of a graph, with one global norm.
struct OptimizerOptions {
  std::vector<ParameterGroup> groups = {{"*", 1e-3, 0.01}};
  double clip = 0;              ///< Largest global gradient norm; 0: no clipping.
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  std::int64_t warmup_steps = 0;  ///< Linear from 0, then cosine to `final_ratio` at `total_steps`.
  std::int64_t total_steps = 0;   ///< 0: constant after the warm-up.
  double final_ratio = 0.1;
};

/// A step that was submitted: join it.
class PendingStep {
 public:
  explicit PendingStep(std::shared_ptr<detail::StepJoin> join) : join_(std::move(join)) {}
  /// Waits at the one barrier of the step.
  /// Fails with: the first failure of any rank in the step (then no parameter of a healthy rank has
  /// changed unless the failure came from the update itself), kTimeout.
  [[nodiscard]] Result<StepReport> get(Duration deadline);

 private:
  std::shared_ptr<detail::StepJoin> join_;
};

/// Updates all stages of the graph it was made by. Thread: the driver's.
class Optimizer {
 public:
  explicit Optimizer(std::shared_ptr<detail::OptimizerCore> core) : core_(std::move(core)) {}

  /// Joins the tapes: gradients summed over the data axes, one token count, one norm, one update.
  /// Submits only. Fails (at get()) with: kInvalidArgument when an open tape of the graph was left out,
  /// naming it.
  [[nodiscard]] PendingStep step(std::vector<Tape>& tapes) const;

  /// Updates so far: what StepReport::step counts and the schedule follows.
  [[nodiscard]] std::int64_t steps() const noexcept;

  /// Both moments and the number of updates of every parameter, put together from the shards, as "first.<full name>",
  /// "second.<full name>", "updates.<full name>". A stage that never saw an element has zeros.
  [[nodiscard]] Result<std::map<std::string, at::Tensor>> state(Duration timeout) const;
  /// Sets them, each rank its own parts, and goes on after `steps` steps. Fails with: kMismatch naming what is missing or
  /// misshapen, before anything is changed; what reading fails with.
  [[nodiscard]] Result<void> load(std::shared_ptr<const TensorReader> reader, std::int64_t steps, Duration timeout) const;

  [[nodiscard]] const std::shared_ptr<detail::OptimizerCore>& core() const noexcept { return core_; }

 private:
  std::shared_ptr<detail::OptimizerCore> core_;
};

}  // namespace troupe
