#include "training_report.hpp"

#include <cstdio>

#include <nlohmann/json.hpp>

#include <troupe/base/text.hpp>
#include <troupe/train/files.hpp>
#include <troupe/train/report.hpp>

namespace qwen_vl {
namespace {

using troupe::text;

double per_second(std::int64_t count, double seconds) { return seconds > 0 ? static_cast<double>(count) / seconds : 0; }

nlohmann::json to_json(const TrainConfig& config, const Training& training) {
  nlohmann::json out = {{"steps", training.losses.size()}, {"first_step", training.first_step}, {"stopped", training.stopped}, {"seconds", training.seconds},
                        {"patches_per_second", per_second(training.patches, training.seconds)}, {"tokens_per_second", per_second(training.tokens, training.seconds)},
                        {"vision", config.vision}, {"language", config.language}, {"dtype", config.dtype}, {"seed", config.seed}, {"batch", config.batch},
                        {"parameters", {{"vision", training.vision_parameters}, {"language", training.language_parameters}}}, {"peak_bytes", training.last.peak_bytes},
                        {"losses", training.losses}, {"answers", nlohmann::json::array()}};
  for (const auto& [edge, bytes] : training.last.bytes_by_edge) out["bytes_by_edge"][edge] = {{"referenced", bytes.referenced}, {"copied", bytes.copied}};
  for (const auto& one : training.answers) out["answers"].push_back({{"picture", one.picture}, {"question", one.question}, {"truth", one.truth}, {"generated", one.generated}});
  return out;
}

std::string rounded(double value, int digits) {
  char out[32];
  std::snprintf(out, sizeof out, "%.*f", digits, value);
  return out;
}

/// Answers with their pictures, where the file can still be read.
troupe::ReportPictures pictures_of(const Training& training) {
  troupe::ReportPictures out{"What it says", {}};
  for (const auto& one : training.answers) {
    auto file = one.picture.empty() ? troupe::Result<std::string>("") : troupe::read_file(one.picture);
    if (!file || file->empty()) continue;
    out.pictures.push_back({std::move(*file), {{"asked", one.question}, {"model", one.generated}, {"data", one.truth}}});
  }
  return out;
}

troupe::ReportPage page_of(const TrainConfig& config, const Training& training) {
  troupe::ReportPage out;
  out.title = "qwen_vl train";
  out.subtitle = text(config.model.empty() ? "a new model" : config.model, " on ", config.data);
  out.figures = {{"loss", training.losses.empty() ? "-" : rounded(training.losses.back(), 3)}, {"steps", text(training.losses.size())},
                 {"patches/s", rounded(per_second(training.patches, training.seconds), 0)}, {"tokens/s", rounded(per_second(training.tokens, training.seconds), 0)}};
  out.curves.push_back({.title = "Training loss", .unit = "nats per token", .values = training.losses});
  out.stages = training.stages;
  for (const auto& [edge, bytes] : training.last.bytes_by_edge) out.edges.push_back({edge, bytes.referenced, bytes.copied});
  if (auto pictures = pictures_of(training); !pictures.pictures.empty()) out.pictures.push_back(std::move(pictures));
  TrainConfig copy = config;
  for (const auto& [name, setting] : settings_of(copy)) {
    out.settings.push_back({name, std::visit([](const auto* value) { return text(*value); }, setting.target)});
  }
  if (training.stopped) out.notes.push_back("Stopped by a signal; --resume goes on.");
  return out;
}

}  // namespace

troupe::Result<void> write_reports(const TrainConfig& config, const Training& training) {
  const std::string json = to_json(config, training).dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (auto ok = troupe::write_file(config.out + "/results.json", json + "\n"); !ok) return ok;
  return troupe::write_report_html(config.out + "/report.html", page_of(config, training));
}

}  // namespace qwen_vl
