#include "training_report.hpp"

#include <nlohmann/json.hpp>

#include <troupe/train/files.hpp>

namespace qwen_vl {
namespace {

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

}  // namespace

troupe::Result<void> write_reports(const TrainConfig& config, const Training& training) {
  return troupe::write_file(config.out + "/results.json", to_json(config, training).dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace qwen_vl
