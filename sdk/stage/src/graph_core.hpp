#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <troupe/stage/graph.hpp>

namespace troupe::detail {

/// The rank of a source: one object, its own thread.
class SourceHost {
 public:
  SourceHost(Rank& rank, const SourceFactory& make) : source_(make(rank)), start_(source_->state()) {}
  Output next() { return source_->next(); }
  /// Where it stood before the first batch; nullopt: it can't say.
  std::optional<std::string> start() const { return source_->can_resume() ? std::optional(start_) : std::nullopt; }
  void restore(const std::string& state) { source_->restore(state); }
  using troupe_pure = Verbs<&SourceHost::next, &SourceHost::start>;  // a failed next() leaves the pool usable: the user decides

 private:
  std::unique_ptr<SourceModule> source_;
  std::string start_;
};

/// A stage or a source of the graph.
struct Node {
  std::string name;
  Mesh mesh;
  std::optional<Pool<StageHost>> stage;
  std::optional<Pool<SourceHost>> source;
  StageOptions options;                 ///< Of a stage.
  StageSettings settings;               ///< What its ranks were made from, with `factory`.
  ModuleFactory factory;
  int inputs = 0;
  bool makes_loss = false;
  int prefetch = 1;
  std::deque<Ref<Output>> ahead;        ///< Batches asked for and not taken.
  std::optional<std::string> position;  ///< Of a source, after the last batch taken; none: where it started.
};

/// The driver's side of a graph. One thread uses it.
class GraphCore {
 public:
  GraphCore(Runtime r, GraphOptions o) : runtime(std::move(r)), options(o) {}

  [[nodiscard]] Node& node(NodeId id) { return nodes[static_cast<std::size_t>(id.index)]; }
  [[nodiscard]] const Node& node(NodeId id) const { return nodes[static_cast<std::size_t>(id.index)]; }

  /// Stages so that each comes after those that feed it; a cycle leaves some out.
  [[nodiscard]] std::vector<NodeId> stages_in_order() const;
  /// The edge into port `port` of `to` whose source is a stage, or else `source`; null: none.
  [[nodiscard]] std::shared_ptr<EdgeBase> edge_into(NodeId to, int port, NodeId source) const;
  /// Axes over which the samples of a stage are sharded, by its input edges.
  [[nodiscard]] std::vector<std::string> sample_axes(NodeId stage) const;

  Runtime runtime;
  GraphOptions options;
  std::vector<Node> nodes;
  std::vector<std::shared_ptr<EdgeBase>> edges;
  std::optional<Error> wrong;           ///< The first impossible connect() or add; check() reports it.
  bool checked = false;
  std::uint64_t next_call = 1;
  std::uint64_t next_tape = 1;
  std::set<std::uint64_t> open_tapes;
  std::int64_t steps = 0;
};

/// One forward of one stage inside a tape.
struct TapeOp {
  NodeId stage;
  std::uint64_t call = 0;
  std::vector<std::shared_ptr<EdgeBase>> edges;   ///< By input.
  std::vector<ValueName> inputs;
  std::vector<Ref<Output>> outputs;
  std::vector<Ref<BackwardResult>> backward;      ///< Empty until submitted.
};

struct TapeCore {
  GraphCore* graph = nullptr;
  std::shared_ptr<GraphCore> keep;                ///< The graph lives as long as its tapes.
  std::uint64_t id = 0;
  bool keep_graph = true;                         ///< False: evaluation, no backward.
  MicroRange range;
  std::vector<TapeOp> ops;
  std::optional<Error> wrong;
};

[[nodiscard]] std::shared_ptr<TapeCore> open_tape(const std::shared_ptr<GraphCore>& graph, bool keep_graph);
/// Runs one micro-batch's forward through `stage`, fed by the connections. Fails with: kNoEdge.
[[nodiscard]] Result<void> forward_stage(TapeCore& tape, NodeId stage, NodeId source, const Ref<Output>& batch, const MicroRange& range);
/// Submits the backward of op `index`; every later op that consumed it must have been submitted before.
void submit_backward_of(TapeCore& tape, std::size_t index);

/// The source's next batch, which stays its next.
[[nodiscard]] Result<Ref<Output>> peek_batch(GraphCore& graph, NodeId source, Duration timeout);

/// Whether `rank`'s loss counts: one of the ranks that hold the same samples.
[[nodiscard]] bool counts_loss(const Mesh& mesh, int rank, std::span<const std::string> sample_axes);

struct OptimizerCore {
  std::shared_ptr<GraphCore> graph;
  OptimizerOptions options;
  std::int64_t step = 0;
};

/// What is waited for at the barrier.
struct StepJoin {
  std::shared_ptr<GraphCore> graph;
  std::optional<Error> wrong;
  std::vector<NodeId> stages;
  std::vector<std::vector<Ref<StepResult>>> results;   ///< By stage, by rank.
  StepReport report;
  TimePoint start;
};

[[nodiscard]] std::shared_ptr<StepJoin> submit_step(const OptimizerCore& optimizer, std::vector<std::shared_ptr<TapeCore>> tapes,
                                                    bool keep_gradients);
[[nodiscard]] Result<StepReport> join_step(StepJoin& join, Duration timeout);
/// Forgets everything of an unfinished step on every stage.
void abandon_all(GraphCore& graph, Duration timeout);
/// Runs a step on tensors without data, on ranks of its own that end with it (NUM-6). What can't be run so is said in
/// the log once. Fails with: what the step fails with, naming the stage.
[[nodiscard]] Result<void> rehearse(GraphCore& graph);
/// The pool a stage's ranks live in.
[[nodiscard]] Result<Pool<StageHost>> make_stage_pool(const Runtime& runtime, PoolOptions options, const StageSettings& settings, const ModuleFactory& factory, Duration deadline);
/// <A x, y> against <x, A* y> for one edge on random fp64 (EDG-2).
[[nodiscard]] Result<void> check_adjoint(const EdgeBase& edge, const Mesh& source_mesh, const PortLayout& source_layout);

}  // namespace troupe::detail
