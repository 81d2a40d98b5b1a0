#include "support/two_stage.hpp"

#include <troupe/base/text.hpp>

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

struct RepeatConfig {
  TwoStageBatch batch;
  static auto troupe_fields(auto& self) { return std::tie(self.batch); }
};

class Repeat {
 public:
  explicit Repeat(const RepeatConfig& config) : batch_(config.batch) {}
  std::optional<TwoStageBatch> next() { return batch_; }

 private:
  TwoStageBatch batch_;
};

StageOptions stage_options(std::string name, const Mesh& mesh) {
  StageOptions out;
  out.name = std::move(name);
  out.mesh = mesh;
  out.dtype = c10::ScalarType::Double;
  return out;
}

void merge_into(std::map<std::string, at::Tensor>& all, std::map<std::string, at::Tensor> more) { all.merge(more); }

/// What graph.step() does, as a user's own loop (level B).
Result<StepReport> step_by_tapes(Graph& graph, const Optimizer& optimizer, const Source<Repeat>& data, const Stage<Encoder>& encoder, const Stage<Decoder>& decoder,
                                 int micro_batches) {
  const auto whole = or_throw(data.next(10s));
  std::vector<Tape> tapes;
  for (auto& micro : whole.split(micro_batches)) {
    auto& tape = tapes.emplace_back(graph.tape());
    tape.backward(tape(decoder, micro.get<&TwoStageBatch::text>(), tape(encoder, micro.get<&TwoStageBatch::patches>())));
  }
  return optimizer.step(tapes).get(60s);
}

}  // namespace

TwoStageTrace trace_two_stage(const TwoStageOptions& options) {
  RuntimeOptions runtime_options;
  runtime_options.environment = torch_environment();
  const Runtime runtime = or_throw(Runtime::create(std::move(runtime_options)));
  Graph graph(runtime, {.seed = 11});
  TwoStageBatch batch{items(options.items, 5, 2, options.samples), text_of(options.samples, 6, 13)};
  const auto data = or_throw(graph.source<Repeat>({.prefetch = 1}, RepeatConfig{batch}));
  const auto encoder = or_throw(graph.stage<Encoder>(stage_options("encoder", options.encoder), EncoderConfig{}));
  const auto decoder = or_throw(graph.stage<Decoder>(stage_options("decoder", options.decoder), DecoderConfig{}));
  graph.connect(data.out<&TwoStageBatch::patches>(), encoder.in<0>(), {.to = balance("dp", "sp")});
  graph.connect(data.out<&TwoStageBatch::text>(), decoder.in<0>(), {.to = by_sample("dp")});
  graph.connect(encoder.out(), decoder.in<1>(), {.to = by_sample("dp", Grad::kReplicated)});
  or_throw(graph.check());
  const auto optimizer = or_throw(graph.optimizer({.groups = {{"*", 1e-2, 0.01}}, .clip = options.clip}));
  TwoStageTrace out;
  for (int step = 0; step < options.steps; ++step) {
    out.last = or_throw(options.level_b ? step_by_tapes(graph, optimizer, data, encoder, decoder, options.micro_batches)
                                        : graph.step(optimizer, {.micro_batches = options.micro_batches, .deadline = 60s, .keep_gradients = true}));
    out.run.losses.push_back(out.last.loss);
    out.run.norms.push_back(out.last.grad_norm);
    if (step == 0 && !options.level_b) {
      out.run.first_gradients = or_throw(encoder.gradients(10s));
      merge_into(out.run.first_gradients, or_throw(decoder.gradients(10s)));
    }
  }
  if (!options.level_b && options.steps > 0) {
    out.run.last_gradients = or_throw(encoder.gradients(10s));
    merge_into(out.run.last_gradients, or_throw(decoder.gradients(10s)));
  }
  out.run.parameters = or_throw(encoder.parameters(10s));
  merge_into(out.run.parameters, or_throw(decoder.parameters(10s)));
  return out;
}

testing::ParityRun run_two_stage(const TwoStageOptions& options) { return trace_two_stage(options).run; }

}  // namespace troupe::test
