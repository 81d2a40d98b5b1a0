#include "train.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include <nlohmann/json.hpp>

#include <troupe/train/report_stage.hpp>
#include <troupe/train/resume.hpp>

#include "captions.hpp"
#include "job.hpp"
#include "common/progress.hpp"

namespace stamps {
namespace {

using namespace std::chrono_literals;
using troupe::Errc;
using troupe::Result;

Result<troupe::Optimizer> make_optimizer(troupe::Graph& graph, const Config& config) {
  constexpr double kDecay = 0.1;
  return graph.optimizer({.groups = {{"vision.*", config.learning_rate, kDecay}, {"language.*", config.learning_rate, kDecay}},
                          .clip = 1.0,
                          .warmup_steps = config.steps / 12,
                          .total_steps = config.steps,
                          .final_ratio = 0.05});
}

/// Everything of a step that the outcome keeps.
void remember(const troupe::StepReport& report, Outcome& outcome) {
  outcome.losses.push_back(report.loss);
  outcome.patches += report.samples * kPatches;
  outcome.tokens += report.valid;
  outcome.patches_per_second.push_back(static_cast<double>(report.samples * kPatches) / std::max(report.seconds.at("step"), 1e-9));
  for (const auto& [stage, by_rank] : report.peak_bytes) outcome.peak_bytes[stage] = by_rank;
  for (const auto& [edge, bytes] : report.bytes_by_edge) outcome.bytes_by_edge[edge] = {bytes.referenced, bytes.copied};
}

std::string checkpoints_of(const Config& config) { return config.out + "/checkpoints"; }

/// The losses so far travel with the checkpoint, for the curve.
Result<void> save(const Job& job, const troupe::Optimizer& optimizer, const Config& config, const Outcome& outcome) {
  const auto saved = troupe::save_training(job.graph, optimizer, {.folder = checkpoints_of(config), .note = nlohmann::json(outcome.losses).dump()});
  if (!saved) return troupe::fail(saved.error());
  return {};
}

Result<void> resume(const Job& job, const troupe::Optimizer& optimizer, const Config& config, Outcome& outcome) {
  const auto saved = troupe::latest_training(checkpoints_of(config));
  if (!saved) return troupe::fail(saved.error());
  if (!*saved) {
    std::printf("nothing to resume in %s: starting at step 1\n", checkpoints_of(config).c_str());
    return {};
  }
  if (auto ok = troupe::resume_training(job.graph, optimizer, **saved); !ok) return ok;
  const auto losses = nlohmann::json::parse((*saved)->note, nullptr, false);
  if (losses.is_array()) outcome.losses = losses.get<std::vector<double>>();
  std::printf("resumed from %s\n", (*saved)->path.c_str());
  return {};
}

Result<void> fit(Job& job, const Config& config, const std::stop_token& stop, Outcome& outcome) {
  const auto optimizer = make_optimizer(job.graph, config);
  if (!optimizer) return troupe::fail(optimizer.error());
  if (config.resume) {
    if (auto ok = resume(job, *optimizer, config, outcome); !ok) return ok;
  }
  const auto start = std::chrono::steady_clock::now();
  samples::Progress progress(optimizer->steps() + 1, config.steps, config.log_every);
  while (optimizer->steps() < config.steps) {
    const auto report = job.graph.step(*optimizer, {.source = job.training.id(), .micro_batches = static_cast<int>(config.micro_batches), .stop = stop});
    if (!report && report.error().code == Errc::kClosed && stop.stop_requested()) {
      outcome.stopped = true;
      break;
    }
    if (!report) {
      progress.finish();
      return troupe::fail(report.error());
    }
    remember(*report, outcome);
    progress.step(*report, report->samples * kPatches);
    if (config.save_every > 0 && report->step % config.save_every == 0) {
      if (auto ok = save(job, *optimizer, config, outcome); !ok) return ok;
    }
  }
  progress.finish();
  if (outcome.stopped && config.save_every > 0) {
    if (auto ok = save(job, *optimizer, config, outcome); !ok) return ok;
  }
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return {};
}

Result<void> describe(const Job& job, Outcome& outcome) {
  auto vision = troupe::report_stage(job.vision, outcome.peak_bytes["vision"], 60s);
  if (!vision) return troupe::fail(vision.error());
  auto language = troupe::report_stage(job.language, outcome.peak_bytes["language"], 60s);
  if (!language) return troupe::fail(language.error());
  outcome.stages = {std::move(*vision), std::move(*language)};
  return {};
}

/// Mean loss over the held-out source's next pass.
Result<double> evaluate_pass(Job& job, const std::stop_token& stop) {
  double sum = 0;
  std::int64_t valid = 0;
  for (;;) {
    const auto report = job.graph.evaluate({.source = job.held_out.id(), .stop = stop});
    if (!report && report.error().code == Errc::kEndOfData) return sum / static_cast<double>(std::max<std::int64_t>(valid, 1));
    if (!report) return troupe::fail(report.error());
    sum += report->loss * static_cast<double>(report->valid);
    valid += report->valid;
  }
}

Result<HeldOut> evaluate(Job& job, const Dataset& data, const std::stop_token& stop) {
  HeldOut out;
  out.unigram = unigram_loss(data);
  for (double* const loss : {&out.with_pictures, &out.shuffled, &out.without}) {  // the source's order: Show
    const auto measured = evaluate_pass(job, stop);
    if (!measured) return troupe::fail(measured.error());
    *loss = *measured;
  }
  return out;
}

template <class S>
Result<void> caption_next(Job& job, const Dataset& data, const troupe::Source<S>& source, const std::vector<const Example*>& examples, bool seen, Outcome& outcome) {
  const auto batch = source.next(60s);
  if (!batch) return troupe::fail(batch.error());
  const auto captions = caption(job.graph, *batch, job.vision, job.language, data.words);
  if (!captions) return troupe::fail(captions.error());
  for (std::size_t i = 0; i < captions->size(); ++i) {
    const Example& example = *examples.at(i);
    const bool known = std::ranges::find(example.tokens, static_cast<std::int64_t>(kUnknown)) == example.tokens.end();
    const auto picture = load_picture(example.picture);
    if (!picture) return troupe::fail(picture.error());
    outcome.captions.push_back({example.picture, example.caption, (*captions)[i], seen, known, png_of(*picture)});
  }
  return {};
}

/// Captions for pictures of the next training batch, and of the held-out source's first one, which is next.
Result<void> show_captions(Job& job, const Config& config, const Dataset& data, Outcome& outcome) {
  std::vector<const Example*> seen;
  for (const auto i : training_batch(data.train.size(), config.batch, config.seed, config.steps)) seen.push_back(&data.train[i]);
  std::vector<const Example*> unseen;
  for (const auto& example : data.held_out) unseen.push_back(&example);
  if (auto ok = caption_next(job, data, job.training, seen, true, outcome); !ok) return ok;
  return caption_next(job, data, job.held_out, unseen, false, outcome);
}

}  // namespace

Result<Outcome> train(const Config& config, std::stop_token stop) {
  const auto data = load_dataset(config.data);
  if (!data) return troupe::fail(data.error());
  std::printf("%zu pictures to train on, %zu held out, %ld left out (no caption); %zu words; vision {%s}, language {%s}\n", data->train.size(), data->held_out.size(),
              static_cast<long>(data->without_caption), data->words.size(), config.vision.c_str(), config.language.c_str());
  auto job = make_job(config, *data);
  if (!job) return troupe::fail(job.error());
  Outcome outcome;
  if (auto ok = fit(*job, config, stop, outcome); !ok) return troupe::fail(ok.error());
  if (auto ok = describe(*job, outcome); !ok) return troupe::fail(ok.error());
  if (outcome.stopped) return outcome;
  const auto held_out = evaluate(*job, *data, stop);
  if (!held_out && held_out.error().code == Errc::kClosed && stop.stop_requested()) {
    outcome.stopped = true;
    return outcome;
  }
  if (!held_out) return troupe::fail(held_out.error());
  outcome.held_out = *held_out;
  if (auto ok = show_captions(*job, config, *data, outcome); !ok) return troupe::fail(ok.error());
  return outcome;
}

}  // namespace stamps
