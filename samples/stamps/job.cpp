#include "job.hpp"

#include <algorithm>
#include <utility>

#include <troupe/base/text.hpp>
#include <troupe/base/units.hpp>
#include <troupe/stage/environment.hpp>

namespace stamps {
namespace {

using namespace troupe::literals;
using troupe::Result;

/// Host memory that plays devices: enough for half a device a rank.
Result<troupe::Runtime> make_runtime(const troupe::Mesh& vision, const troupe::Mesh& language) {
  troupe::RuntimeOptions options;
  options.environment = troupe::torch_environment({.track_memory = true});
  for (int device = 0; device < std::max(vision.size(), language.size()); ++device) {
    options.simulated_devices.push_back({troupe::text("simulated-", device), 4_GiB});
  }
  return troupe::Runtime::create(std::move(options));
}

Result<troupe::Stage<Vision>> add_vision(troupe::Graph& graph, const Config& config, troupe::Mesh mesh) {
  troupe::StageOptions options;
  options.name = "vision";
  options.mesh = std::move(mesh);
  options.per_rank = {.gpus = 0.5, .gpu_memory_bytes = 1_GiB};
  return graph.stage<Vision>(std::move(options), VisionConfig{config.width, config.heads, config.layers, config.width});
}

Result<troupe::Stage<Language>> add_language(troupe::Graph& graph, const Config& config, troupe::Mesh mesh, std::size_t words) {
  troupe::StageOptions options;
  options.name = "language";
  options.mesh = std::move(mesh);
  options.per_rank = {.gpus = 0.5, .gpu_memory_bytes = 2_GiB};
  return graph.stage<Language>(std::move(options), LanguageConfig{static_cast<std::int64_t>(words), config.width, config.heads, config.layers});
}

/// Both sources feed the same two inputs: pictures balanced over the encoder's ranks by their cost, each cut
/// between its sp ranks; captions to the decoder by sample.
template <class S>
Result<troupe::Source<S>> add_source(troupe::Graph& graph, const troupe::Stage<Vision>& vision, const troupe::Stage<Language>& language, const char* name,
                                     SourceConfig config) {
  auto source = graph.source<S>({.name = name, .prefetch = 2}, std::move(config));
  if (!source) return source;
  graph.connect(source->template out<&Batch::pixels>(), vision.in<0>(), {.to = troupe::balance("dp", "sp")});
  graph.connect(source->template out<&Batch::text>(), language.in<0>(), {.to = troupe::by_sample("dp")});
  return source;
}

}  // namespace

Result<Job> make_job(const Config& config, const Dataset& data) {
  const auto vision_mesh = troupe::Mesh::parse(config.vision);
  if (!vision_mesh) return troupe::fail(vision_mesh.error());
  const auto language_mesh = troupe::Mesh::parse(config.language);
  if (!language_mesh) return troupe::fail(language_mesh.error());
  auto runtime = make_runtime(*vision_mesh, *language_mesh);
  if (!runtime) return troupe::fail(runtime.error());
  troupe::Graph graph{*runtime, {.seed = static_cast<std::uint64_t>(config.seed)}};
  auto vision = add_vision(graph, config, *vision_mesh);
  if (!vision) return troupe::fail(vision.error());
  auto language = add_language(graph, config, *language_mesh, data.words.size());
  if (!language) return troupe::fail(language.error());
  // every tp rank computes the whole gradient of the picture tokens: one is taken
  graph.connect(vision->out(), language->in<1>(), {.to = troupe::by_sample("dp", troupe::Grad::kReplicated)});
  auto training = add_source<TrainingSource>(graph, *vision, *language, "training", {data.train, config.batch, config.seed});
  if (!training) return troupe::fail(training.error());
  auto held_out = add_source<HeldOutSource>(graph, *vision, *language, "held_out", {data.held_out, config.batch, config.seed});
  if (!held_out) return troupe::fail(held_out.error());
  if (auto ok = graph.check(); !ok) return troupe::fail(ok.error());
  return Job{std::move(graph), *vision, *language, *training, *held_out};
}

}  // namespace stamps
