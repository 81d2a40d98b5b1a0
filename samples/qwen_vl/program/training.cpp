#include "training.hpp"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <utility>

#include <nlohmann/json.hpp>

#include <unistd.h>

#include <troupe/base/text.hpp>
#include <troupe/train/report_stage.hpp>
#include <troupe/train/resume.hpp>

#include "answers.hpp"
#include "chat_source.hpp"
#include "checkpoint.hpp"
#include "common/progress.hpp"
#include "layout_flags.hpp"
#include "new_model.hpp"

namespace qwen_vl {
namespace {

using namespace std::chrono_literals;
using troupe::Errc;
using troupe::Result;
using troupe::text;

/// What a rank may hold: as told, or its even part of this machine's memory.
std::int64_t rank_bytes(const TrainConfig& config, const LayoutOptions& layout) {
  if (config.rank_gib > 0) return static_cast<std::int64_t>(config.rank_gib * static_cast<double>(std::int64_t{1} << 30));
  const std::int64_t machine = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  return machine / (layout.vision.size() + layout.language.size());
}

/// Everything of a run that is alive.
struct Job {
  Preparation preparation;
  Model model;
  troupe::Source<ChatSource> source;
  troupe::Optimizer optimizer;
};

/// The folder that tokenizer and sizes come from; of a new model it is made first.
Result<std::string> prepare_folder(const TrainConfig& config) {
  if (!config.model.empty()) return config.model;
  const std::string folder = config.out + "/model";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return troupe::fail(Errc::kIo, text(folder, ": can't be made: ", error.message()));
  if (config.resume && std::filesystem::exists(folder + "/config.json", error)) return folder;
  const auto preparation = new_model(config);
  if (!preparation) return troupe::fail(preparation.error());
  if (auto ok = write_preparation(*preparation, folder); !ok) return troupe::fail(ok.error());
  return folder;
}

Result<troupe::Source<ChatSource>> add_source(Model& model, const TrainConfig& config, const std::string& folder) {
  ChatSourceConfig source{.data = config.data, .folder = folder, .question = config.question, .batch = config.batch, .limit = config.limit, .max_tokens = config.max_tokens,
                          .seed = config.seed};
  source.dtype = troupe::or_throw(parse_layout(config.vision, config.language, config.dtype)).dtype;
  auto out = model.graph.source<ChatSource>({.name = "data", .prefetch = 2}, std::move(source));
  if (out) feed(model, *out);
  return out;
}

Result<Job> make_job(const TrainConfig& config) {
  const auto folder = prepare_folder(config);
  if (!folder) return troupe::fail(folder.error());
  auto preparation = read_preparation(*folder);
  if (!preparation) return troupe::fail(preparation.error());
  auto layout = parse_layout(config.vision, config.language, config.dtype);
  if (!layout) return troupe::fail(layout.error());
  layout->seed = static_cast<std::uint64_t>(config.seed);
  layout->rank_bytes = rank_bytes(config, *layout);
  auto model = parallelize(preparation->model, *layout);
  if (!model) return troupe::fail(model.error());
  if (!config.model.empty()) {
    if (auto ok = load_checkpoint(*model, preparation->model, config.model); !ok) return troupe::fail(ok.error());
  }
  auto source = add_source(*model, config, *folder);
  if (!source) return troupe::fail(source.error());
  if (auto ok = model->graph.check(); !ok) return troupe::fail(ok.error());
  auto optimizer = model->graph.optimizer({.groups = {{"vision.*", config.vision_learning_rate, config.weight_decay}, {"language.*", config.language_learning_rate, config.weight_decay}},
                                           .clip = config.clip,
                                           .warmup_steps = config.steps / 20,
                                           .total_steps = config.steps});
  if (!optimizer) return troupe::fail(optimizer.error());
  return Job{std::move(*preparation), std::move(*model), std::move(*source), std::move(*optimizer)};
}

Result<void> resume(const Job& job, const TrainConfig& config, Training& out) {
  const auto saved = troupe::latest_training(config.out + "/checkpoints");
  if (!saved) return troupe::fail(saved.error());
  if (!*saved) {
    std::printf("nothing to resume in %s/checkpoints: starting at step 1\n", config.out.c_str());
    return {};
  }
  if (auto ok = troupe::resume_training(job.model.graph, job.optimizer, **saved); !ok) return ok;
  const auto losses = nlohmann::json::parse((*saved)->note, nullptr, false);
  if (losses.is_array()) out.losses = losses.get<std::vector<double>>();
  out.first_step = (*saved)->step + 1;
  std::printf("resumed from %s\n", (*saved)->path.c_str());
  return {};
}

Result<void> save(const Job& job, const TrainConfig& config, const Training& out) {
  const auto saved = troupe::save_training(job.model.graph, job.optimizer, {.folder = config.out + "/checkpoints", .note = nlohmann::json(out.losses).dump()});
  if (!saved) return troupe::fail(saved.error());
  return {};
}

/// Bytes of the pixel rows -> patches, over the edge from the data.
std::int64_t patches_in(const troupe::StepReport& report, const Job& job, c10::ScalarType dtype) {
  std::int64_t bytes = 0;
  for (const auto& [edge, traffic] : report.bytes_by_edge) {
    if (edge.ends_with("patches -> vision.in0")) bytes += traffic.copied + traffic.referenced;
  }
  return bytes / (job.preparation.model.vision.patch_values() * static_cast<std::int64_t>(c10::elementSize(dtype)));
}

Result<void> fit(Job& job, const TrainConfig& config, const std::stop_token& stop, Training& out) {
  const auto dtype = troupe::or_throw(parse_layout(config.vision, config.language, config.dtype)).dtype;
  samples::Progress progress(out.first_step, config.steps, config.log_every);
  const auto start = std::chrono::steady_clock::now();
  Result<void> ok;
  for (std::int64_t step = out.first_step; ok && step <= config.steps; ++step) {
    auto report = job.model.graph.step(job.optimizer, {.source = job.source.id(), .micro_batches = static_cast<int>(config.micro_batches), .stop = stop});
    out.stopped = !report && report.error().code == Errc::kClosed && stop.stop_requested();
    if (out.stopped) break;
    if (!report) {
      ok = troupe::fail(report.error());
      break;
    }
    const std::int64_t patches = patches_in(*report, job, dtype);
    out.losses.push_back(report->loss);
    out.patches += patches;
    out.tokens += report->valid;
    progress.step(*report, patches);
    out.last = std::move(*report);
    if (config.save_every > 0 && (step % config.save_every == 0 || step == config.steps)) ok = save(job, config, out);
  }
  progress.finish();
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (ok && out.stopped && config.save_every > 0 && job.optimizer.steps() > 0) ok = save(job, config, out);
  return ok;
}

template <class M>
Result<std::int64_t> count_parameters(const troupe::Stage<M>& stage) {
  const auto all = stage.parameters(5min);
  if (!all) return troupe::fail(all.error());
  std::int64_t count = 0;
  for (const auto& [name, tensor] : *all) count += tensor.numel();
  return count;
}

}  // namespace

Result<Training> train(const TrainConfig& config, std::stop_token stop) {
  if (auto ok = check(config); !ok) return troupe::fail(ok.error());
  auto job = make_job(config);
  if (!job) return troupe::fail(job.error());
  Training out;
  for (auto [count, to] : {std::pair{count_parameters(job->model.vision), &out.vision_parameters}, std::pair{count_parameters(job->model.language), &out.language_parameters}}) {
    if (!count) return troupe::fail(count.error());
    *to = *count;
  }
  std::printf("vision {%s}: %.2f M parameters; language {%s}: %.2f M; vocabulary %ld\n", config.vision.c_str(), static_cast<double>(out.vision_parameters) / 1e6, config.language.c_str(),
              static_cast<double>(out.language_parameters) / 1e6, static_cast<long>(job->preparation.model.language.vocabulary));
  if (config.resume) {
    if (auto ok = resume(*job, config, out); !ok) return troupe::fail(ok.error());
  }
  if (auto ok = fit(*job, config, stop, out); !ok) return troupe::fail(ok.error());
  for (auto stage : {troupe::report_stage(job->model.vision, out.last.peak_bytes["vision"], 1min), troupe::report_stage(job->model.language, out.last.peak_bytes["language"], 1min)}) {
    if (!stage) return troupe::fail(stage.error());
    out.stages.push_back(std::move(*stage));
  }
  out.folder = config.out + "/model";
  if (auto ok = save_checkpoint(job->model, job->preparation.model, out.folder); !ok) return troupe::fail(ok.error());
  if (auto ok = write_preparation(job->preparation, out.folder); !ok) return troupe::fail(ok.error());
  if (out.stopped) return out;
  auto answers = answer_records(job->model, job->preparation, config.data, config.question, config.shown);
  if (!answers) return troupe::fail(answers.error());
  out.answers = std::move(*answers);
  return out;
}

}  // namespace qwen_vl
