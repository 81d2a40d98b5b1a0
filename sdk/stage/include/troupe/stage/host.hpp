#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <troupe/actors/rank.hpp>
#include <troupe/parallel/parameters.hpp>
#include <troupe/parallel/tensor_reader.hpp>
#include <troupe/stage/edge.hpp>
#include <troupe/stage/module.hpp>
#include <troupe/stage/optimizer.hpp>

namespace troupe::detail {

/// What a stage needs beside its module.
struct StageSettings {
  std::string name;
  std::uint64_t seed = 0;
  c10::ScalarType dtype = c10::ScalarType::Float;
  std::vector<std::string> data_axes;
  c10::Device device = c10::DeviceType::CPU;   ///< Meta: shapes without data, for graph.check().
};

/// All inputs of one forward call.
struct InputSet {
  std::vector<InputValue> inputs;
  std::vector<std::shared_ptr<const EdgeBase>> edges;
  bool keep_graph = true;                  ///< False: evaluation; nothing is kept for a backward.
};

/// Gradients for the outputs of one forward call, in the order of the calls that consumed them.
struct GradientSet {
  std::vector<EdgeGradient> gradients;     ///< edge->from_port says for which output.
};

/// Waits for its sources and carries nothing.
struct Token {};

/// Gradients of one forward call's inputs; `inputs[i].rows` undefined where none flows.
struct BackwardResult {
  std::vector<Packed> inputs;
};

/// One rank's share of what the step needs to know (summed in (stage, rank) order: NUM-8).
struct StepPart {
  at::Tensor norm_square;   ///< 0-dim fp64, parameters counted once (NUM-3).
  at::Tensor loss_sum;      ///< 0-dim fp64; undefined when the stage makes no loss.
  std::int64_t valid = 0;
};
struct StepTotals {
  at::Tensor norm;          ///< 0-dim fp64, of the mean loss, before clipping.
  at::Tensor loss;          ///< 0-dim fp64, the mean.
  std::int64_t valid = 0;
};

/// What the driver decides for a step.
struct StepSettings {
  std::int64_t step = 1;
  double learning_rate_factor = 1;
  bool keep_gradients = false;
  static auto troupe_fields(auto& self) { return std::tie(self.step, self.learning_rate_factor, self.keep_gradients); }
};

/// What a rank tells at the barrier.
struct StepResult {
  StepTotals totals;
  bool skipped = false;
  std::map<std::string, double> seconds;
  std::map<std::string, EdgeTraffic> traffic;
};

struct StageDescription {
  std::vector<PortSpec> inputs;
  std::vector<PortSpec> outputs;
  std::int64_t parameter_bytes = 0;
  std::int64_t parameters = 0;
  std::vector<std::string> names;   ///< Full names of its parameters.
};

/// Parameters or gradients of one rank with what is needed to put the global ones together.
struct NamedShards {
  std::vector<ParameterSpec> specs;
  std::vector<at::Tensor> tensors;
};
enum class Export : std::uint8_t { kParameters, kGradients, kFirstMoments, kSecondMoments, kUpdates };

/// The name under which an optimizer's state of a parameter is stored: "first.vision.embed.weight".
[[nodiscard]] std::string moment_name(Export what, const std::string& full);

/// Where a stage's parameters are stored, and under which names.
struct StoredParameters {
  std::shared_ptr<const TensorReader> reader;
  std::function<std::string(const std::string& full)> name_of;
};

/// A verb of the user's module, to run on every rank (Stage::call).
struct ModuleAction {
  std::function<std::shared_ptr<void>(void* module)> run;
};
struct ActionResult {
  std::shared_ptr<void> value;
};

/// A rank of a stage: the object in its pool. Keeps the autograd graphs between forward and backward.
/// Verbs but apply and load change nothing that abandon does not undo: they are declared pure (POOL-7).
class StageHost {
 public:
  StageHost(Rank& rank, const StageSettings& settings, const ModuleFactory& make);
  ~StageHost();

  /// `call` names this forward for its backward.
  Output forward(std::uint64_t call, const InputSet& inputs);
  BackwardResult backward(std::uint64_t call, const GradientSet& gradients, const Token& after);
  /// Sums gradients over the data axes and measures them. `sample_axes`: over which this stage's samples are
  /// sharded, so whose losses add up.
  StepPart reduce(const Token& after, const std::vector<std::string>& sample_axes);
  StepResult apply(const StepSettings& settings, const StepTotals& totals);
  /// Forgets tapes and gradients of a step that failed or won't be used.
  void abandon();
  void set_optimizer(const OptimizerOptions& options);
  StageDescription describe() const;
  NamedShards shards(Export what) const;
  /// Takes this rank's part of each global tensor; all parameters must be there, with their shapes.
  void load(const std::map<std::string, at::Tensor>& global);
  /// Whether all parameters are stored with their shapes; reads nothing.
  void expect_stored(const StoredParameters& stored) const;
  /// Reads this rank's part of each.
  void load_stored(const StoredParameters& stored);
  /// The same for what the optimizer keeps: names as moment_name() makes them.
  void expect_moments(const StoredParameters& stored) const;
  void load_moments(const StoredParameters& stored);
  /// Without gradients.
  ActionResult run(const ModuleAction& action);

  using troupe_pure = Verbs<&StageHost::forward, &StageHost::backward, &StageHost::reduce, &StageHost::abandon,
                            &StageHost::describe, &StageHost::shards, &StageHost::expect_stored, &StageHost::expect_moments>;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

template <class T>
struct OpaquePayload {
  static std::int64_t bytes(const T&) { return sizeof(T); }
  static std::uint64_t fingerprint(const T&) { return 0; }
};

}  // namespace troupe::detail

namespace troupe {

template <> struct Payload<detail::InputSet> : detail::OpaquePayload<detail::InputSet> {};
template <> struct Payload<detail::GradientSet> : detail::OpaquePayload<detail::GradientSet> {};
template <> struct Payload<detail::Token> : detail::OpaquePayload<detail::Token> {};
template <> struct Payload<detail::BackwardResult> : detail::OpaquePayload<detail::BackwardResult> {};
template <> struct Payload<detail::StepPart> : detail::OpaquePayload<detail::StepPart> {};
template <> struct Payload<detail::StepTotals> : detail::OpaquePayload<detail::StepTotals> {};
template <> struct Payload<detail::StepResult> : detail::OpaquePayload<detail::StepResult> {};
template <> struct Payload<detail::StageDescription> : detail::OpaquePayload<detail::StageDescription> {};
template <> struct Payload<detail::NamedShards> : detail::OpaquePayload<detail::NamedShards> {};
template <> struct Payload<detail::StoredParameters> : detail::OpaquePayload<detail::StoredParameters> {};
template <> struct Payload<detail::ModuleAction> : detail::OpaquePayload<detail::ModuleAction> {};
template <> struct Payload<detail::ActionResult> : detail::OpaquePayload<detail::ActionResult> {};
template <> struct Payload<OptimizerOptions> : detail::OpaquePayload<OptimizerOptions> {};
template <> struct Payload<std::map<std::string, at::Tensor>> : detail::OpaquePayload<std::map<std::string, at::Tensor>> {};

}  // namespace troupe
