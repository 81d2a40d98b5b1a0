#include "report.hpp"

#include <fstream>
#include <system_error>

#include <nlohmann/json.hpp>

#include <troupe/base/text.hpp>

#include "curve.hpp"

namespace stamps {

using troupe::Errc;
using troupe::text;

troupe::Result<void> write_whole(const std::filesystem::path& path, const std::string& content) {
  const std::filesystem::path part = path.string() + ".part";
  std::error_code error;
  std::ofstream file(part, std::ios::binary | std::ios::trunc);
  file << content;
  file.close();
  if (!file) {
    std::filesystem::remove(part, error);
    return troupe::fail(Errc::kIo, text("can't write ", part.string(), ": is the disk full, or the folder read-only?"));
  }
  std::filesystem::rename(part, path, error);
  if (!error) return {};
  const std::string reason = error.message();
  std::filesystem::remove(part, error);
  return troupe::fail(Errc::kIo, text("can't rename ", part.string(), " to ", path.string(), ": ", reason));
}

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
  if (auto ok = write_whole(folder / "results.json", to_json(config, outcome).dump(1) + "\n"); !ok) return ok;
  return write_whole(folder / "loss.svg", loss_svg(outcome.losses, outcome.held_out));
}

}  // namespace stamps
