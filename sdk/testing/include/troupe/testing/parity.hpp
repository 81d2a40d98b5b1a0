#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <troupe/stage/environment.hpp>
#include <troupe/stage/graph.hpp>

namespace troupe::testing {

/// How expect_parity() runs a module.
struct ParityOptions {
  std::vector<Mesh> meshes;               ///< Each is held against the serial twin.
  std::vector<PortLayout> inputs;         ///< One per parameter of forward(); axes a mesh lacks have size 1.
  int steps = 3;                          ///< Optimizer steps, all on the same inputs.
  int micro_batches = 1;
  double tolerance = 1e-10;               ///< On NUM-1's measure.
  double learning_rate = 1e-2;
  std::uint64_t seed = 1;
  Mesh consumer = {};                     ///< Mesh of the stage that takes a packed output (edges M:N).
  PortLayout consumer_input = replicate(Grad::kReplicated);
  std::vector<std::string> data_axes = {"dp", "sp"};
  Duration timeout = std::chrono::minutes(2);
};

/// What one run left.
struct ParityRun {
  std::vector<double> losses;             ///< By step.
  std::vector<double> norms;
  std::map<std::string, at::Tensor> first_gradients;  ///< Of the mean loss, before the first update.
  std::map<std::string, at::Tensor> last_gradients;
  std::map<std::string, at::Tensor> parameters;       ///< After the last step.
};

struct ParityReport {
  bool ok = false;
  double worst = 0;                       ///< Largest relative error seen, over all meshes.
  std::string where = {};                 ///< Of `worst`: mesh and tensor.
  std::string message = {};               ///< Empty when ok.
  explicit operator bool() const noexcept { return ok; }
};

/// Holds `run` against `serial` by NUM-1's measure: max|a-b| / max(max|b|, 1e-6 x the largest gradient).
[[nodiscard]] ParityReport compare(const ParityRun& serial, const ParityRun& run, const std::string& name, double tolerance);

/// True when both runs are the same bits: losses, gradients, parameters.
[[nodiscard]] bool identical(const ParityRun& a, const ParityRun& b);

namespace detail {

/// A loss over a packed output that every row and column reaches with its own weight, fixed by item id.
class ProbeLoss {
 public:
  ProbeLoss(Rank&, const int& /*unused*/) {}
  Loss forward(const Packed& rows);
};

template <class... In>
struct Inputs {
  std::tuple<In...> values;
  static auto troupe_fields(auto& self) {
    return std::apply([](auto&... fields) { return std::tie(fields...); }, self.values);
  }
};

template <class... In>
class Repeat {
 public:
  explicit Repeat(const Inputs<In...>& inputs) : inputs_(inputs) {}
  std::optional<Inputs<In...>> next() { return inputs_; }

 private:
  Inputs<In...> inputs_;
};

template <std::size_t I, class Batch>
struct Nth {
  using Type = std::tuple_element_t<I, decltype(Batch::values)>;
  static const Type* look(const void* object) { return &std::get<I>(static_cast<const Batch*>(object)->values); }
};


/// Steps the graph and collects; not a template, so that each module costs little to compile.
[[nodiscard]] Result<ParityRun> run_steps(Graph& graph, const ParityOptions& options, const std::function<Result<std::map<std::string, at::Tensor>>(bool gradients)>& tensors);

template <class M, class Config, class... In, std::size_t... I>
Result<ParityRun> run_on(const Mesh& mesh, const Mesh& consumer, const Config& config, const Inputs<In...>& inputs, const ParityOptions& options,
                         std::index_sequence<I...>) {
  RuntimeOptions runtime_options;
  runtime_options.environment = torch_environment();
  auto runtime = Runtime::create(std::move(runtime_options));
  if (!runtime) return fail(runtime.error());
  Graph graph(*runtime, {.seed = options.seed});
  auto source = graph.template source<Repeat<In...>>({.name = "inputs", .prefetch = 1}, inputs);
  if (!source) return fail(source.error());
  StageOptions stage_options;
  stage_options.name = "module";
  stage_options.mesh = mesh;
  stage_options.dtype = c10::ScalarType::Double;
  stage_options.data_axes = options.data_axes;
  auto stage = graph.template stage<M>(std::move(stage_options), config);
  if (!stage) return fail(stage.error());
  using Batch = Inputs<In...>;
  (graph.connect(OutPort<In>{source->id(), text("input", I), -1, &Nth<I, Batch>::look}, stage->template in<I>(), {.to = options.inputs.at(I)}), ...);
  if constexpr (std::is_same_v<typename Stage<M>::Output, Packed>) {
    StageOptions probe_options;
    probe_options.name = "probe";
    probe_options.mesh = consumer;
    probe_options.dtype = c10::ScalarType::Double;
    auto probe = graph.template stage<ProbeLoss>(std::move(probe_options), 0);
    if (!probe) return fail(probe.error());
    graph.connect(stage->out(), probe->template in<0>(), {.to = options.consumer_input});
  }
  return run_steps(graph, options, [&](bool gradients) { return gradients ? stage->gradients(options.timeout) : stage->parameters(options.timeout); });
}

}  // namespace detail

/// Trains module M for some steps on one rank.
template <class M, class Config, class... In>
[[nodiscard]] Result<ParityRun> run_serial(const Config& config, const std::tuple<In...>& inputs, const ParityOptions& options) {
  return detail::run_on<M>(Mesh{}, Mesh{}, config, detail::Inputs<In...>{inputs}, options, std::index_sequence_for<In...>());
}

/// Trains module M for some steps in the layout `mesh`.
template <class M, class Config, class... In>
[[nodiscard]] Result<ParityRun> run_parallel(const Mesh& mesh, const Config& config, const std::tuple<In...>& inputs, const ParityOptions& options) {
  return detail::run_on<M>(mesh, options.consumer, config, detail::Inputs<In...>{inputs}, options, std::index_sequence_for<In...>());
}

/// Runs a user's module serially and in each mesh, in fp64, and compares the loss of every step, every
/// gathered gradient and every parameter after the last step (NUM-7). A module that returns Packed is
/// followed by a probe loss on `consumer`. Give floating-point inputs as fp64.
/// The report names the first tensor that is wrong and where.
template <class M, class Config, class... In>
[[nodiscard]] ParityReport expect_parity(const Config& config, const std::tuple<In...>& inputs, const ParityOptions& options) {
  const auto serial = run_serial<M>(config, inputs, options);
  if (!serial) return {.message = "the serial twin failed: " + serial.error().describe()};
  ParityReport all{.ok = true};
  for (const Mesh& mesh : options.meshes) {
    const std::string name = mesh.to_string().empty() ? "one rank" : mesh.to_string();
    const auto run = run_parallel<M>(mesh, config, inputs, options);
    if (!run) return {.message = name + ": " + run.error().describe()};
    ParityReport one = compare(*serial, *run, name, options.tolerance);
    if (!one) return one;
    if (one.worst >= all.worst) {
      all.worst = one.worst;
      all.where = one.where;
    }
  }
  return all;
}

}  // namespace troupe::testing
