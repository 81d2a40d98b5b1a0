// Bad input and failures of user code: typed, named, and nothing else disturbed.
#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include <troupe/base/units.hpp>
#include <troupe/stage/environment.hpp>

#include "support/two_stage.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;
using namespace troupe::literals;

struct Batch {
  Packed rows;
  static auto troupe_fields(auto& self) { return std::tie(self.rows); }
};

struct SourceConfig {
  std::int64_t samples = 2;
  std::int64_t batches = 100;
  std::int64_t throw_at = -1;
  static auto troupe_fields(auto& self) { return std::tie(self.samples, self.batches, self.throw_at); }
};

class Data {
 public:
  explicit Data(const SourceConfig& config) : config_(config) {}
  std::optional<Batch> next() {
    if (made_ == config_.batches) return std::nullopt;
    if (made_++ == config_.throw_at) throw std::runtime_error("picture 17 is broken");
    return Batch{test::items(std::vector<std::int64_t>(static_cast<std::size_t>(config_.samples), 4), 3, 1, std::max<std::int64_t>(config_.samples, 1))};
  }

 private:
  SourceConfig config_;
  std::int64_t made_ = 0;
};

struct Plan {
  std::int64_t throw_on_rank = -1;
  std::int64_t throw_in_call = -1;
  std::int64_t expects = 3;         ///< Columns it declares.
  std::int64_t heads = 2;           ///< Refuses meshes that do not divide it.
  std::int64_t scratch = 0;         ///< Elements it allocates in forward.
  std::int64_t wrong_rows = 0;
  static auto troupe_fields(auto& self) {
    return std::tie(self.throw_on_rank, self.throw_in_call, self.expects, self.heads, self.scratch, self.wrong_rows);
  }
};

class Module {
 public:
  Module(Rank& rank, const Plan& plan) : rank_(rank), plan_(plan), linear_(rank.parameters("linear"), 3, 3) {
    if (plan.heads % rank.mesh().size("tp") != 0) {
      throw Exception(Error{.code = Errc::kInvalidArgument, .message = text("tp=", rank.mesh().size("tp"), " needs heads % tp == 0; the model has ", plan.heads)});
    }
  }
  Packed forward(const Packed& in) {
    const at::Tensor y = linear_.forward(in.rows);
    if (calls_++ == plan_.throw_in_call && rank_.index() == plan_.throw_on_rank) throw std::runtime_error("bad luck");
    or_throw(rank_.axis("tp").barrier());   // the others wait in a collective
    if (plan_.scratch > 0) (void)at::zeros({plan_.scratch}, at::kFloat);
    return {plan_.wrong_rows == 0 ? y : y.narrow(0, 0, y.size(0) - 1), in.segments};
  }
  [[nodiscard]] std::vector<PortSpec> input_ports() const { return {{"columns", {plan_.expects}, c10::ScalarType::Double}}; }
  [[nodiscard]] std::vector<PortSpec> output_ports() const { return {{"columns", {3}, c10::ScalarType::Double}}; }

 private:
  Rank& rank_;
  Plan plan_;
  Linear linear_;
  std::int64_t calls_ = 0;
};

class Sum {
 public:
  Sum(Rank&, const Plan& plan) : expects_(plan.expects) {}
  Loss forward(const Packed& in) { return {in.rows.square().sum(), rows_of(in.segments)}; }
  [[nodiscard]] std::vector<PortSpec> input_ports() const { return {{"columns", {expects_}, c10::ScalarType::Double}}; }

 private:
  std::int64_t expects_;
};

class StageFailure : public ::testing::Test {
 protected:
  Result<Stage<Module>> add_module(const Plan& plan, Mesh mesh = {{"tp", 2}}, Resources per_rank = {}) {
    StageOptions options;
    options.name = "module";
    options.mesh = std::move(mesh);
    options.dtype = c10::ScalarType::Double;
    options.per_rank = per_rank;
    return graph.stage<Module>(std::move(options), plan);
  }
  /// data -> module -> sum
  void build(const Plan& plan, const SourceConfig& data_config = {}, const Plan& sum = {}, Resources per_rank = {}) {
    data = or_throw(graph.source<Data>({.prefetch = 1}, data_config));
    module = or_throw(add_module(plan, {{"tp", 2}}, per_rank));
    end = or_throw(graph.stage<Sum>({.name = "sum", .dtype = c10::ScalarType::Double}, sum));
    graph.connect(data->out<&Batch::rows>(), module->in<0>(), {.to = replicate()});
    graph.connect(module->out(), end->in<0>(), {.to = replicate(Grad::kReplicated)});
  }
  Result<StepReport> step() {
    if (!optimizer) {
      auto made = graph.optimizer({.groups = {{"*", 1e-2, 0.0}}});
      if (!made) return fail(made.error());
      optimizer = *made;
    }
    return graph.step(*optimizer, {.deadline = 20s});
  }
  static RuntimeOptions with_memory() {
    RuntimeOptions out;
    out.environment = torch_environment({.track_memory = true});
    out.simulated_devices = {{"d0", 1_GiB}, {"d1", 1_GiB}};
    return out;
  }

  Runtime runtime = or_throw(Runtime::create(with_memory()));
  Graph graph{runtime};
  std::optional<Source<Data>> data;
  std::optional<Stage<Module>> module;
  std::optional<Stage<Sum>> end;
  std::optional<Optimizer> optimizer;
};

// NUM-5, SUP-6: refused before anything runs, with the module's own reason
TEST_F(StageFailure, ALayoutTheModuleRefusesIsRefusedByStage) {
  const auto refused = add_module({}, {{"tp", 3}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kInvalidArgument);
  EXPECT_NE(refused.error().message.find("tp=3 needs heads % tp == 0; the model has 2"), std::string::npos) << refused.error().describe();
  EXPECT_TRUE(add_module({}, {{"tp", 2}})) << "the name is free again";
}

// POOL-7: one member throws while the other waits in a collective; the step fails, the next one works
TEST_F(StageFailure, AThrowingForwardFailsTheStepAndOnlyIt) {
  build({.throw_on_rank = 1, .throw_in_call = 1});
  ASSERT_TRUE(step());
  const auto before = or_throw(module->parameters(5s));
  const auto failed = step();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::kUserException);
  EXPECT_NE(failed.error().describe().find("bad luck"), std::string::npos) << failed.error().describe();
  EXPECT_NE(failed.error().describe().find("pool module, rank 1"), std::string::npos) << failed.error().describe();
  for (const auto& [name, parameter] : or_throw(module->parameters(5s))) EXPECT_TRUE(at::equal(parameter, before.at(name))) << name;
  const auto after = step();
  EXPECT_TRUE(after) << after.error().describe();
}

// NUM-2: not against another layout, which could be wrong alike, but by hand: micro-batches of 3 and 2 samples
TEST_F(StageFailure, TheLossIsTheMeanOverAllValidElements) {
  build({}, {.samples = 5});
  auto made = or_throw(graph.optimizer({.groups = {{"*", 1e-2, 0.0}}}));
  const auto parameters = or_throw(module->parameters(5s));
  const at::Tensor x = test::items({4, 4, 4, 4, 4}, 3, 1, 5).rows;
  const at::Tensor y = at::linear(x, parameters.at("module.linear.weight"), parameters.at("module.linear.bias"));
  const auto report = or_throw(graph.step(made, {.micro_batches = 2, .deadline = 20s, .keep_gradients = true}));
  EXPECT_EQ(report.valid, 20);
  EXPECT_NEAR(report.loss, y.square().sum().item<double>() / 20, 1e-12);
  const at::Tensor gradient = or_throw(module->gradients(5s)).at("module.linear.weight");
  EXPECT_TRUE(at::allclose(gradient, (2 * y).t().matmul(x) / 20, 1e-10, 1e-12));
}

TEST_F(StageFailure, APortWithTheWrongShapeIsNamed) {
  build({.expects = 5});
  const auto failed = step();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::kMismatch);
  EXPECT_NE(failed.error().describe().find("expected Double [rows, 5]"), std::string::npos) << failed.error().describe();
}

TEST_F(StageFailure, DeclaredPortsThatDisagreeAreFoundByCheck) {
  build({}, {}, {.expects = 4});
  const auto checked = graph.check();
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, Errc::kMismatch);
  EXPECT_NE(checked.error().message.find("module -> sum.in0"), std::string::npos) << checked.error().message;
}

TEST_F(StageFailure, RowsAndSegmentsThatDisagreeAreNamed) {
  build({.wrong_rows = 1});
  const auto failed = step();
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().describe().find("the segments tell 8 rows"), std::string::npos) << failed.error().describe();
}

// RES-5: a typed error that names the allocation; the rank survives
TEST_F(StageFailure, AnAllocationPastTheBudgetIsAnErrorNotACrash) {
  build({.scratch = 64 << 20}, {}, {}, {.gpus = 0.5, .gpu_memory_bytes = 64_MiB});
  const auto failed = step();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::kOutOfMemory) << failed.error().describe();
  EXPECT_NE(failed.error().describe().find("an allocation of 256.00 MiB"), std::string::npos) << failed.error().describe();
  EXPECT_TRUE(module->parameters(5s)) << "the rank still answers";
}

TEST_F(StageFailure, ParametersThatCanNotFitAreRefusedByCheck) {
  build({}, {}, {}, {.gpus = 0.5, .gpu_memory_bytes = 100});
  const auto checked = graph.check();
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, Errc::kOutOfMemory) << checked.error().describe();
}

TEST_F(StageFailure, AnEmptyBatchIsBadData) {
  build({}, {.samples = 0});
  const auto failed = step();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::kBadData) << failed.error().describe();
}

TEST_F(StageFailure, ASourceThatThrowsFailsThatStepOnly) {
  build({}, {.throw_at = 1});
  EXPECT_TRUE(step());
  const auto failed = step();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::kUserException);
  EXPECT_NE(failed.error().describe().find("picture 17 is broken"), std::string::npos);
  EXPECT_TRUE(step());
}

TEST_F(StageFailure, TheEndOfDataChangesNothing) {
  build({}, {.batches = 1});
  ASSERT_TRUE(step());
  const auto before = or_throw(module->parameters(5s));
  const auto ended = step();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, Errc::kEndOfData);
  for (const auto& [name, parameter] : or_throw(module->parameters(5s))) EXPECT_TRUE(at::equal(parameter, before.at(name))) << name;
}

TEST_F(StageFailure, AStopTokenEndsBeforeAnythingIsSubmitted) {
  build({});
  ASSERT_TRUE(step());
  std::stop_source stop;
  stop.request_stop();
  const auto stopped = graph.step(*optimizer, {.stop = stop.get_token()});
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Errc::kClosed);
  EXPECT_TRUE(step());
}

TEST_F(StageFailure, WrongGraphsAreRefusedByCheck) {
  data = or_throw(graph.source<Data>({}, SourceConfig{}));
  module = or_throw(add_module({}));
  end = or_throw(graph.stage<Sum>({.name = "sum", .mesh = {{"dp", 2}}, .dtype = c10::ScalarType::Double}, Plan{}));
  EXPECT_EQ(graph.check().error().code, Errc::kNoEdge) << "nothing is connected";
  graph.connect(data->out<&Batch::rows>(), module->in<0>(), {.to = replicate()});
  graph.connect(module->out(), end->in<0>(), {.to = replicate(Grad::kReplicated)});
  const auto replicated = graph.check();
  ASSERT_FALSE(replicated);
  EXPECT_NE(replicated.error().message.find("each sample would be trained that many times"), std::string::npos) << replicated.error().message;
}

// NUM-3: replicas over a data axis would sum the same gradient several times
TEST_F(StageFailure, ADataAxisThatNothingShardsIsRefused) {
  data = or_throw(graph.source<Data>({}, SourceConfig{}));
  module = or_throw(add_module({}, {{"sp", 2}}));
  end = or_throw(graph.stage<Sum>({.name = "sum", .dtype = c10::ScalarType::Double}, Plan{}));
  graph.connect(data->out<&Batch::rows>(), module->in<0>(), {.to = replicate()});
  graph.connect(module->out(), end->in<0>(), {.to = replicate(Grad::kReplicated)});
  const auto checked = graph.check();
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().message.find("no edge shards an input over it"), std::string::npos) << checked.error().message;
}

TEST_F(StageFailure, AFloatEdgeMustSayHowItsGradientReturns) {
  data = or_throw(graph.source<Data>({}, SourceConfig{}));
  module = or_throw(add_module({}));
  end = or_throw(graph.stage<Sum>({.name = "sum", .dtype = c10::ScalarType::Double}, Plan{}));
  graph.connect(data->out<&Batch::rows>(), module->in<0>(), {.to = replicate()});
  graph.connect(module->out(), end->in<0>(), {.to = replicate()});
  const auto checked = graph.check();
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().message.find("must say how its gradient returns"), std::string::npos) << checked.error().message;
}

TEST_F(StageFailure, ATapeLeftOutIsNamed) {
  build({});
  ASSERT_TRUE(step());
  const auto batch = or_throw(data->next(5s));
  std::vector<Tape> tapes;
  tapes.push_back(graph.tape());
  const Tape forgotten = graph.tape();
  tapes[0].backward(tapes[0](*end, tapes[0](*module, batch.get<&Batch::rows>())));
  const auto failed = optimizer->step(tapes).get(5s);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::kInvalidArgument);
  EXPECT_NE(failed.error().message.find("was left out"), std::string::npos) << failed.error().message;
}

TEST_F(StageFailure, OptimizerGroupsMustMatchSomething) {
  build({});
  EXPECT_NE(graph.optimizer({.groups = {{"vision.*", 1e-3, 0.0}}}).error().message.find("is in no group"), std::string::npos);
  EXPECT_NE(graph.optimizer({.groups = {{"*", 1e-3, 0.0}, {"audio.*", 1e-3, 0.0}}}).error().message.find("matches no parameter"), std::string::npos);
}

TEST(StageSlices, VectorsHaveOneEntryASample) {
  const PortLayout layout = by_sample("dp");
  const Mesh mesh{{"dp", 2}};
  detail::SliceContext context;
  context.layout = &layout;
  context.mesh = &mesh;
  context.rank = 1;
  context.range = {1, 3, 5};
  context.samples = detail::samples_in_order(context);
  EXPECT_EQ(detail::slice(std::vector<std::int64_t>{10, 11, 12, 13, 14}, context), (std::vector<std::int64_t>{13})) << "samples 1 .. 3, of them the last";
  EXPECT_THROW((void)detail::slice(std::vector<std::int64_t>{1, 2}, context), Exception);
}

// EDG-5, TRN-6: by reference, no copy
TEST(StageHandOver, OneToOneIsByReference) {
  const auto trace = test::trace_two_stage({.items = {8}, .samples = 1, .steps = 1});
  for (const auto& [name, bytes] : trace.last.bytes_by_edge) EXPECT_EQ(bytes.copied, 0) << name;
}

// wrong connections do not compile
template <class From, class To>
concept Connects = requires(Graph graph, From from, To to) { graph.connect(from, to, {}); };
static_assert(Connects<OutPort<Packed>, InPort<Packed>>);
static_assert(!Connects<OutPort<Packed>, InPort<at::Tensor>>);
static_assert(!Connects<OutPort<at::Tensor>, InPort<Packed>>);
static_assert(!StageModule<Data, SourceConfig>);

}  // namespace
}  // namespace troupe
