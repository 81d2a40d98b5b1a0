#include "support/program.hpp"

#include <charconv>

#include <troupe/base/text.hpp>
#include <troupe/stage/environment.hpp>

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

Runtime make_runtime() {
  RuntimeOptions options;
  options.environment = torch_environment();
  return or_throw(Runtime::create(std::move(options)));
}

StageOptions stage_options(std::string name, const Mesh& mesh, c10::ScalarType dtype) {
  StageOptions out;
  out.name = std::move(name);
  out.mesh = mesh;
  out.dtype = dtype;
  return out;
}

Optimizer connected(Graph& graph, const Source<Stream>& data, const Stage<Encoder>& encoder, const Stage<Decoder>& decoder, const OptimizerOptions& options) {
  graph.connect(data.out<&TwoStageBatch::patches>(), encoder.in<0>(), {.to = balance("dp", "sp")});
  graph.connect(data.out<&TwoStageBatch::text>(), decoder.in<0>(), {.to = by_sample("dp")});
  graph.connect(encoder.out(), decoder.in<1>(), {.to = by_sample("dp", Grad::kReplicated)});
  or_throw(graph.check());
  return or_throw(graph.optimizer(options));
}

}  // namespace

std::optional<TwoStageBatch> Stream::next() {
  if (made_ >= config_.batches) return std::nullopt;
  const std::int64_t at = made_++;
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; at >= config_.text_only && i < config_.samples; ++i) rows.push_back(2 + 2 * ((at + 3 * i) % 5));
  TwoStageBatch out{items(rows, 5, 2, config_.samples), text_of(config_.samples, 6, 13)};
  out.patches.rows = out.patches.rows + 0.1 * static_cast<double>(at);
  out.text.ids = out.text.ids.add(at).remainder(13);
  return out;
}

void Stream::restore(const std::string& state) {
  const auto [end, error] = std::from_chars(state.data(), state.data() + state.size(), made_);
  if (error != std::errc() || end != state.data() + state.size()) {
    throw Exception(Error{.code = Errc::kBadData, .message = text("the state of a Stream is a number, got '", state, "'")});
  }
}

Program::Program(const ProgramOptions& options)
    : runtime(make_runtime()),
      graph(runtime, {.seed = options.seed, .rehearse = options.rehearse}),
      data(or_throw(graph.source<Stream>({.prefetch = options.prefetch}, options.data))),
      encoder(or_throw(graph.stage<Encoder>(stage_options("encoder", options.encoder, options.dtype), options.encoder_config))),
      decoder(or_throw(graph.stage<Decoder>(stage_options("decoder", options.decoder, options.dtype), options.decoder_config))),
      optimizer(connected(graph, data, encoder, decoder, options.optimizer)) {}

StepReport Program::step(int micro_batches) { return or_throw(graph.step(optimizer, {.micro_batches = micro_batches, .deadline = 60s})); }

std::vector<double> Program::train(int steps, int micro_batches) {
  std::vector<double> out;
  for (int i = 0; i < steps; ++i) out.push_back(step(micro_batches).loss);
  return out;
}

std::string differing(const std::map<std::string, at::Tensor>& a, const std::map<std::string, at::Tensor>& b) {
  std::string out;
  for (const auto& [name, tensor] : a) {
    const auto other = b.find(name);
    if (other == b.end() || !at::equal(tensor, other->second)) out += name + " ";
  }
  for (const auto& [name, tensor] : b) {
    if (!a.contains(name)) out += name + " ";
  }
  return out;
}

}  // namespace troupe::test
