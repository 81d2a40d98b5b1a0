#include "report.hpp"

#include <filesystem>
#include <system_error>

#include <nlohmann/json.hpp>

#include <troupe/base/text.hpp>
#include <troupe/train/files.hpp>

#include "page.hpp"

namespace stamps {

using troupe::Errc;
using troupe::text;

namespace {

nlohmann::json to_json(const Config& config, const Outcome& outcome) {
  nlohmann::json json = {{"steps", outcome.losses.size()},
                         {"stopped", outcome.stopped},
                         {"seed", config.seed},
                         {"batch", config.batch},
                         {"vision", config.vision},
                         {"language", config.language},
                         {"seconds", outcome.seconds},
                         {"patches_per_second", outcome.per_second(outcome.patches)},
                         {"tokens_per_second", outcome.per_second(outcome.tokens)},
                         {"peak_bytes", outcome.peak_bytes},
                         {"losses", outcome.losses},
                         {"held_out", nullptr},
                         {"captions", nlohmann::json::array()}};
  for (const auto& [edge, bytes] : outcome.bytes_by_edge) json["bytes_by_edge"][edge] = {{"referenced", bytes.referenced}, {"copied", bytes.copied}};
  if (const auto& held = outcome.held_out) {
    json["held_out"] = {{"true", held->with_pictures}, {"shuffled", held->shuffled}, {"none", held->without}, {"unigram", held->unigram}};
  }
  for (const auto& one : outcome.captions) json["captions"].push_back({{"picture", one.picture}, {"truth", one.truth}, {"generated", one.generated}, {"seen", one.seen}, {"known", one.known}});
  return json;
}

}  // namespace

troupe::Result<void> write_reports(const Config& config, const Outcome& outcome) {
  const std::filesystem::path folder = config.out;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return troupe::fail(Errc::kIo, text("can't make folder ", config.out, ": ", error.message()));
  // "replace": a model may say bytes that are no UTF-8
  const std::string json = to_json(config, outcome).dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (auto ok = troupe::write_file(folder / "results.json", json); !ok) return ok;
  if (auto ok = troupe::write_file(folder / "loss.svg", troupe::curve_svg(loss_curve(outcome))); !ok) return ok;
  return troupe::write_report_html(folder / "report.html", page_of(config, outcome));
}

}  // namespace stamps
