// The whole of Qwen2.5-VL against PyTorch eager with sdpa: the same model, batch and number of threads, steps in turn.
#include <cstdlib>
#include <optional>

#include <nlohmann/json.hpp>

#include <troupe/base/text.hpp>

#include "batch_file.hpp"
#include "checkpoint.hpp"
#include "generate.hpp"
#include "peer.hpp"
#include "rows.hpp"

namespace bench {
namespace {

using namespace qwen_vl;
using troupe::or_throw;

/// What tools/bench made ready; nullopt: it was not asked to.
struct Ready {
  std::string python, models;
};
std::optional<Ready> ready() {
  const char* python = std::getenv("TROUPE_PEER_PYTHON");
  const char* models = std::getenv("TROUPE_PEER_MODELS");
  if (python == nullptr || models == nullptr) return std::nullopt;
  return Ready{python, models};
}

/// The same batch again and again.
class Repeat {
 public:
  explicit Repeat(const Batch& batch) : batch_(batch) {}
  std::optional<Batch> next() { return batch_; }

 private:
  Batch batch_;
};

/// One rank for each module, one thread each; they work in turn.
Model load(const std::string& folder) {
  const ModelConfig config = or_throw(read_config(folder));
  Model model = or_throw(parallelize(config, {}));
  or_throw(load_checkpoint(model, config, folder));
  return model;
}

Row against_step(const std::string& shape, int rounds, double limit) {
  const std::string name = "qwen.step_vs_transformers." + shape;
  const auto about = ready();
  if (!about) return {.name = name, .unit = "s", .reason = "not measured: run tools/bench qwen, which makes the peer's environment"};
  const std::string folder = about->models + "/" + shape;
  Peer peer({about->python, BENCH_PEERS "/step.py", folder, folder + "/batch.safetensors", "--threads", "1", "--grad-norm"});
  Model model = load(folder);
  const Batch batch = or_throw(assemble(or_throw(read_batch(folder + "/batch.safetensors")), or_throw(read_config(folder)))).batch;
  const auto source = or_throw(model.graph.source<Repeat>({.name = "batch", .prefetch = 1}, batch));
  feed(model, source);
  const auto optimizer = or_throw(model.graph.optimizer({.groups = {{"*", 1e-5, 0.01}}}));
  const auto ours = [&] { return or_throw(model.graph.step(optimizer, {.source = source.id()})).seconds.at("step"); };
  const auto theirs = [&] { return nlohmann::json::parse(peer.ask("step")).at("seconds").get<double>(); };
  for (int i = 0; i < 3; ++i) (void)ours(), (void)theirs();
  return with_target(paired(name, "s", rounds, ours, theirs), Of::kRatio, true, limit);
}

Row against_generation() {
  const auto about = ready();
  if (!about) return {.name = "qwen.generate", .unit = "tokens/s", .reason = "not measured: run tools/bench qwen"};
  const std::string folder = about->models + "/1024";
  Peer peer({about->python, BENCH_PEERS "/generate.py", folder, folder + "/prompt.safetensors", "--threads", "1"});
  Model model = load(folder);
  const ModelConfig config = or_throw(read_config(folder));
  const RawBatch prompt = or_throw(read_batch(folder + "/prompt.safetensors"));
  const auto ours = [&] {
    const auto made = or_throw(generate(model, config, prompt, {.max_tokens = 64}));
    return static_cast<double>(made.tokens.size() - 1) / made.token_seconds;
  };
  const auto theirs = [&] { return nlohmann::json::parse(peer.ask("generate")).at("tokens_per_second").get<double>(); };
  (void)ours(), (void)theirs();
  return paired("qwen.generate", "tokens/s", 5, ours, theirs);
}

}  // namespace

std::vector<Row> qwen() { return {against_step("tiny", 31, 0.6), against_step("1024", 5, 1.0), against_generation()}; }

}  // namespace bench
