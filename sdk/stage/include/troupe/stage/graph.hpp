#pragma once

#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <troupe/actors/runtime.hpp>
#include <troupe/stage/schedule.hpp>
#include <troupe/stage/source.hpp>
#include <troupe/stage/stage.hpp>

namespace troupe {

/// Stages may be fed by several sources (training and held-out data): each input once per source.
struct GraphOptions {
  std::uint64_t seed = 0;        ///< Of all initial values and draws (NUM-8).
  bool rehearse = true;          ///< check() also runs a step on tensors without data.
};

struct StepOptions {
  NodeId source = {};            ///< Whose next batch; may be left out when the graph has one source.
  int micro_batches = 1;
  Schedule schedule = Schedule::kSequential;
  Duration deadline = std::chrono::minutes(10);
  bool keep_gradients = false;   ///< For Stage::gradients(): tests and inspection.
  std::stop_token stop = {};     ///< Looked at before anything is submitted: kClosed, nothing changed.
};

namespace detail {
[[nodiscard]] std::shared_ptr<GraphCore> make_graph(Runtime runtime, GraphOptions options);
[[nodiscard]] Result<NodeId> add_stage(GraphCore& graph, StageOptions options, ModuleFactory factory, int inputs, bool makes_loss);
[[nodiscard]] Result<NodeId> add_source(GraphCore& graph, SourceOptions options, SourceFactory factory);
void add_edge(GraphCore& graph, std::shared_ptr<EdgeBase> edge);
[[nodiscard]] Result<void> check_graph(GraphCore& graph);
[[nodiscard]] Result<Optimizer> make_optimizer(const std::shared_ptr<GraphCore>& graph, OptimizerOptions options);
[[nodiscard]] Result<std::map<std::string, at::Tensor>> all_parameters(GraphCore& graph, Duration timeout);
[[nodiscard]] Result<void> load_all(GraphCore& graph, const std::shared_ptr<const TensorReader>& reader, const std::function<std::string(const std::string&)>& name_of, Duration timeout);
[[nodiscard]] Result<std::map<std::string, std::string>> source_states(GraphCore& graph, Duration timeout);
[[nodiscard]] Result<void> restore_sources(GraphCore& graph, const std::map<std::string, std::string>& states, Duration timeout);
[[nodiscard]] std::uint64_t graph_seed(const GraphCore& graph);
[[nodiscard]] Tape make_tape(const std::shared_ptr<GraphCore>& graph, bool keep_graph);
[[nodiscard]] Result<StepReport> run_step(const std::shared_ptr<GraphCore>& graph, const Optimizer& optimizer, const StepOptions& options);
[[nodiscard]] Result<StepReport> run_evaluation(const std::shared_ptr<GraphCore>& graph, const StepOptions& options);
[[nodiscard]] Result<Packed> fetch_value(GraphCore& graph, const ValueName& value, Duration timeout);
}  // namespace detail

/// Stages, sources and the edges between them: a training program whose modules have different layouts.
/// Level A: step() runs a whole optimizer step with one wait. Level B: tape() and your own loop.
/// Thread: one driver thread, not a rank.
class Graph {
 public:
  explicit Graph(Runtime runtime, GraphOptions options = {}) : core_(detail::make_graph(std::move(runtime), options)) {}

  /// Starts a pool with one M per rank of `options.mesh` and waits for the constructors.
  /// Fails with: kInvalidArgument, kInfeasible, kResourcesBusy; what a constructor threw, e.g. a layout the
  /// module refuses (NUM-5).
  template <class M, class Config>
    requires StageModule<M, Config>
  [[nodiscard]] Result<Stage<M>> stage(StageOptions options, Config config) {
    detail::ModuleFactory factory = [config = std::move(config)](Rank& rank) -> std::unique_ptr<detail::Module> {
      return std::make_unique<detail::ModuleOf<M>>(rank, config);
    };
    constexpr int inputs = static_cast<int>(std::tuple_size_v<detail::forward_parameters<M>>);
    auto node = detail::add_stage(*core_, std::move(options), std::move(factory), inputs, std::is_same_v<detail::forward_result<M>, Loss>);
    if (!node) return fail(std::move(node.error()));
    return Stage<M>(core_, *node);
  }

  /// Starts a source on a rank of its own.
  template <class S, class Config>
    requires SourceModule<S, Config>
  [[nodiscard]] Result<Source<S>> source(SourceOptions options, Config config) {
    detail::SourceFactory factory = [config = std::move(config)](Rank& rank) -> std::unique_ptr<detail::SourceModule> {
      return std::make_unique<detail::SourceOf<S>>(rank, config);
    };
    auto node = detail::add_source(*core_, std::move(options), std::move(factory));
    if (!node) return fail(std::move(node.error()));
    return Source<S>(core_, *node);
  }

  /// Feeds `to` from `from`. Types that differ do not compile. What is wrong with the layout is reported by
  /// check().
  template <class T>
  void connect(OutPort<T> from, InPort<T> to, EdgeOptions options) {
    auto edge = std::make_shared<detail::Edge<T>>();
    edge->from = from.node;
    edge->from_port = from.index;
    edge->from_name = from.name;
    edge->to = to.node;
    edge->to_port = to.index;
    edge->layout = std::move(options.to);
    edge->look = from.look;
    detail::add_edge(*core_, std::move(edge));
  }

  /// Proves the graph before the first step: every input fed once per source, no cycle, one loss; layouts against
  /// meshes; declared dims and dtypes; each gradient edge against its adjoint on random fp64 (EDG-2);
  /// parameter, gradient and optimizer bytes against each budget. Then, with GraphOptions::rehearse, a whole step on each
  /// source's first batch, which stays its next: on objects of the same classes and ranks of their own, with the
  /// batch's host integers and tensors without data (LibTorch's meta device), collectives that agree and move nothing
  /// (NUM-6). It finds shapes that do not fit and code that reads tensors in the middle of a step; what it can't run is said
  /// in the log, once. Nothing of the graph changes. Fails with: kInvalidArgument, kMismatch, kOutOfMemory, kNoEdge, kUserException,
  /// naming edge, stage, expected and got.
  [[nodiscard]] Result<void> check() { return detail::check_graph(*core_); }

  /// Fails with: kInvalidArgument for a parameter that no group matches, or a group that matches none.
  [[nodiscard]] Result<Optimizer> optimizer(OptimizerOptions options) { return detail::make_optimizer(core_, std::move(options)); }

  /// One optimizer step on the source's next batch: cut by sample into micro-batches, forward and backward
  /// through all stages, one update, one wait. Edges from other sources rest. check() is run first when it
  /// was not. Fails with: kEndOfData (nothing changed), kClosed (stop), kTimeout, the first failure of any rank; the
  /// step's tapes are then forgotten and no parameter has changed, unless the update itself failed.
  [[nodiscard]] Result<StepReport> step(const Optimizer& optimizer, const StepOptions& options = {}) {
    return detail::run_step(core_, optimizer, options);
  }

  /// Loss of the source's next batch without backward or update.
  [[nodiscard]] Result<StepReport> evaluate(const StepOptions& options = {}) { return detail::run_evaluation(core_, options); }

  /// A stage's packed output in whole, items by id, on the driver: for looking and for generation.
  [[nodiscard]] Result<Packed> fetch(const Value<Packed>& value, Duration timeout) { return detail::fetch_value(*core_, value.name(), timeout); }

  /// Every parameter of every stage by its full name, put together from the shards.
  [[nodiscard]] Result<std::map<std::string, at::Tensor>> parameters(Duration timeout) const { return detail::all_parameters(*core_, timeout); }
  /// Sets them all; `name_of` gives the stored name of a full name. As Stage::load().
  [[nodiscard]] Result<void> load(const std::shared_ptr<const TensorReader>& reader, const std::function<std::string(const std::string&)>& name_of, Duration timeout) const {
    return detail::load_all(*core_, reader, name_of, timeout);
  }
  /// Where each source stands, by its name (Source::state()).
  [[nodiscard]] Result<std::map<std::string, std::string>> source_states(Duration timeout) const { return detail::source_states(*core_, timeout); }
  /// Takes each source there. Fails with: kMismatch when the names are not those of the graph's sources.
  [[nodiscard]] Result<void> restore_sources(const std::map<std::string, std::string>& states, Duration timeout) const {
    return detail::restore_sources(*core_, states, timeout);
  }
  [[nodiscard]] std::uint64_t seed() const { return detail::graph_seed(*core_); }

  /// A new micro-batch (level B).
  [[nodiscard]] Tape tape() { return detail::make_tape(core_, true); }

  /// The same without autograd graphs: for looking and for generation; joined by no optimizer.
  [[nodiscard]] Tape evaluation_tape() { return detail::make_tape(core_, false); }

 private:
  std::shared_ptr<detail::GraphCore> core_;
};

}  // namespace troupe
