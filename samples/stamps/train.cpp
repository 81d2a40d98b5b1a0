#include "train.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>

#include <troupe/base/units.hpp>
#include <troupe/stage/environment.hpp>

#include "captions.hpp"
#include "progress.hpp"

namespace stamps {
namespace {

using namespace std::chrono_literals;
using namespace troupe::literals;
using troupe::Result;

/// Stages, sources and edges of the job.
struct Job {
  Dataset data;
  troupe::Runtime runtime;
  troupe::Graph graph;
  std::optional<troupe::Source<StampSource>> training = {}, held_out = {}, shuffled = {}, without = {}, shown_seen = {}, shown_unseen = {};
  std::optional<troupe::Stage<Vision>> vision = {};
  std::optional<troupe::Stage<Language>> language = {};
};

constexpr std::int64_t kShown = 6;

Result<troupe::Runtime> make_runtime() {
  troupe::RuntimeOptions options;
  options.environment = troupe::torch_environment({.track_memory = true});
  // two simulated devices: each stage takes a share of both and a budget of its own
  options.simulated_devices = {{"simulated-0", 4_GiB}, {"simulated-1", 4_GiB}, {"simulated-2", 4_GiB}, {"simulated-3", 4_GiB}};
  return troupe::Runtime::create(std::move(options));
}

Result<void> add_stages(Job& job, const Config& config) {
  troupe::StageOptions vision;
  vision.name = "vision";
  vision.mesh = troupe::or_throw(troupe::Mesh::parse(config.vision));
  vision.per_rank = {.gpus = 0.5, .gpu_memory_bytes = 1_GiB};
  auto encoder = job.graph.stage<Vision>(std::move(vision), VisionConfig{config.width, config.heads, config.layers, config.width});
  if (!encoder) return troupe::fail(encoder.error());
  job.vision = *encoder;

  troupe::StageOptions language;
  language.name = "language";
  language.mesh = troupe::or_throw(troupe::Mesh::parse(config.language));
  language.per_rank = {.gpus = 0.5, .gpu_memory_bytes = 2_GiB};
  auto decoder = job.graph.stage<Language>(std::move(language), LanguageConfig{static_cast<std::int64_t>(job.data.words.size()), config.width, config.heads, config.layers});
  if (!decoder) return troupe::fail(decoder.error());
  job.language = *decoder;
  job.graph.connect(job.vision->out(), job.language->in<1>(), {.to = troupe::by_sample("dp", troupe::Grad::kReplicated)});
  return {};
}

Result<troupe::Source<StampSource>> add_source(Job& job, const char* name, SourceConfig config) {
  auto source = job.graph.source<StampSource>({.name = name, .prefetch = 2}, std::move(config));
  if (!source) return source;
  job.graph.connect(source->out<&Batch::pixels>(), job.vision->in<0>(), {.to = troupe::balance("dp", "sp")});
  job.graph.connect(source->out<&Batch::text>(), job.language->in<0>(), {.to = troupe::by_sample("dp")});
  return source;
}

Result<void> add_sources(Job& job, const Config& config) {
  const auto some = [](const std::vector<Example>& all) { return std::vector<Example>(all.begin(), all.begin() + std::min<std::ptrdiff_t>(kShown, std::ssize(all))); };
  const auto add = [&](auto& place, const char* name, SourceConfig source) -> Result<void> {
    auto made = add_source(job, name, std::move(source));
    if (!made) return troupe::fail(made.error());
    place = *made;
    return {};
  };
  const auto once = [&](const std::vector<Example>& examples, Pictures pictures) { return SourceConfig{examples, config.batch, config.seed, pictures, false}; };
  if (auto ok = add(job.training, "training", {job.data.train, config.batch, config.seed, Pictures::kTrue, true}); !ok) return ok;
  if (auto ok = add(job.held_out, "held_out", once(job.data.held_out, Pictures::kTrue)); !ok) return ok;
  if (auto ok = add(job.shuffled, "held_out_shuffled", once(job.data.held_out, Pictures::kShuffled)); !ok) return ok;
  if (auto ok = add(job.without, "held_out_without", once(job.data.held_out, Pictures::kNone)); !ok) return ok;
  if (auto ok = add(job.shown_seen, "shown_seen", once(some(job.data.train), Pictures::kTrue)); !ok) return ok;
  return add(job.shown_unseen, "shown_unseen", once(some(job.data.held_out), Pictures::kTrue));
}

/// Mean loss over one pass of a source.
Result<double> evaluate(Job& job, const troupe::Source<StampSource>& source) {
  double sum = 0;
  std::int64_t valid = 0;
  for (;;) {
    const auto report = job.graph.evaluate({.source = source.id()});
    if (!report && report.error().code == troupe::Errc::kEndOfData) break;
    if (!report) return troupe::fail(report.error());
    sum += report->loss * static_cast<double>(report->valid);
    valid += report->valid;
  }
  return sum / static_cast<double>(std::max<std::int64_t>(valid, 1));
}

Result<void> fit(Job& job, const Config& config, std::stop_token stop, Outcome& outcome) {
  const auto optimizer = job.graph.optimizer({.groups = {{"vision.*", config.learning_rate, 0.05}, {"language.*", config.learning_rate, 0.05}},
                                              .clip = 1.0, .warmup_steps = config.steps / 12, .total_steps = config.steps, .final_ratio = 0.05});
  if (!optimizer) return troupe::fail(optimizer.error());
  const auto start = std::chrono::steady_clock::now();
  Progress progress(config.steps, config.log_every);
  double patches = 0;
  double tokens = 0;
  for (std::int64_t step = 0; step < config.steps; ++step) {
    const auto report = job.graph.step(*optimizer, {.source = job.training->id(), .micro_batches = static_cast<int>(config.micro_batches), .stop = stop});
    if (!report && report.error().code == troupe::Errc::kClosed) {
      outcome.stopped = true;
      break;
    }
    if (!report) return troupe::fail(report.error());
    outcome.losses.push_back(report->loss);
    progress.step(*report, report->samples * kPatches);
    patches += static_cast<double>(report->samples * kPatches);
    tokens += static_cast<double>(report->valid);
  }
  progress.finish();
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  outcome.patches_per_second = patches / outcome.seconds;
  outcome.tokens_per_second = tokens / outcome.seconds;
  return {};
}

Result<void> show_captions(Job& job, Outcome& outcome) {
  for (const bool seen : {true, false}) {
    auto captions = caption(job.graph, seen ? *job.shown_seen : *job.shown_unseen, *job.vision, *job.language, job.data.words);
    if (!captions) return troupe::fail(captions.error());
    const auto& examples = seen ? job.data.train : job.data.held_out;
    for (std::size_t i = 0; i < captions->size(); ++i) {
      outcome.captions.push_back({examples[i].picture, caption_of(job.data.words, examples[i].tokens), (*captions)[i], seen});
    }
  }
  return {};
}

}  // namespace

Result<Outcome> train(const Config& config, std::stop_token stop) {
  auto data = load_dataset(config.data);
  if (!data) return troupe::fail(data.error());
  std::printf("%zu pictures to train on, %zu held out, %zu words; vision %s, language %s\n", data->train.size(), data->held_out.size(), data->words.size(),
              config.vision.c_str(), config.language.c_str());
  auto runtime = make_runtime();
  if (!runtime) return troupe::fail(runtime.error());
  Job job{std::move(*data), *runtime, troupe::Graph(*runtime, {.seed = static_cast<std::uint64_t>(config.seed)})};
  if (auto ok = add_stages(job, config); !ok) return troupe::fail(ok.error());
  if (auto ok = add_sources(job, config); !ok) return troupe::fail(ok.error());
  if (auto ok = job.graph.check(); !ok) return troupe::fail(ok.error());
  Outcome outcome;
  outcome.held_out.unigram = unigram_loss(job.data);
  if (auto ok = fit(job, config, stop, outcome); !ok) return troupe::fail(ok.error());
  if (outcome.stopped) return outcome;
  for (auto [source, loss] : {std::pair{&job.held_out, &outcome.held_out.with_pictures}, {&job.shuffled, &outcome.held_out.shuffled}, {&job.without, &outcome.held_out.without}}) {
    auto measured = evaluate(job, **source);
    if (!measured) return troupe::fail(measured.error());
    *loss = *measured;
  }
  if (auto ok = show_captions(job, outcome); !ok) return troupe::fail(ok.error());
  return outcome;
}

}  // namespace stamps
