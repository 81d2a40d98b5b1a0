#include "report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include <troupe/base/text.hpp>

namespace stamps {
namespace {

using troupe::text;

troupe::Result<void> write_whole(const std::filesystem::path& path, const std::string& content) {
  const std::filesystem::path part = path.string() + ".part";
  {
    std::ofstream file(part, std::ios::binary | std::ios::trunc);
    file << content;
    file.flush();
    if (!file) return troupe::fail(troupe::Errc::kIo, text("can't write ", part.string(), ": is the disk full, or the folder read-only?"));
  }
  std::error_code error;
  std::filesystem::rename(part, path, error);
  if (error) return troupe::fail(troupe::Errc::kIo, text("can't rename ", part.string(), " to ", path.string(), ": ", error.message()));
  return {};
}

constexpr double kWidth = 720, kHeight = 380, kLeft = 60, kTop = 30, kRight = 20, kBottom = 50;

struct Scale {
  double steps, top;
  [[nodiscard]] double x(double step) const { return kLeft + (kWidth - kLeft - kRight) * (step / steps); }
  [[nodiscard]] double y(double loss) const { return kTop + (kHeight - kTop - kBottom) * (1 - loss / top); }
};

std::string line_of(const std::vector<double>& values, const Scale& scale, const char* style) {
  std::ostringstream out;
  out << "<polyline fill=\"none\" " << style << " points=\"";
  for (std::size_t i = 0; i < values.size(); ++i) out << scale.x(static_cast<double>(i + 1)) << ',' << scale.y(values[i]) << ' ';
  out << "\"/>\n";
  return out.str();
}

std::string label(double x, double y, const char* anchor, const std::string& words) {
  return text("<text x=\"", x, "\" y=\"", y, "\" text-anchor=\"", anchor, "\">", words, "</text>\n");
}

}  // namespace

std::string loss_svg(const std::vector<double>& losses, double unigram) {
  double top = unigram;
  for (const double loss : losses) top = std::max(top, loss);
  const Scale scale{std::max<double>(1, static_cast<double>(losses.size())), std::ceil(top)};
  std::vector<double> smooth;
  for (const double loss : losses) smooth.push_back(smooth.empty() ? loss : 0.9 * smooth.back() + 0.1 * loss);
  std::ostringstream out;
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << kWidth << "\" height=\"" << kHeight
      << "\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  for (int loss = 0; loss <= static_cast<int>(scale.top); ++loss) {
    const double y = scale.y(loss);
    out << "<line x1=\"" << kLeft << "\" x2=\"" << kWidth - kRight << "\" y1=\"" << y << "\" y2=\"" << y << "\" stroke=\"#ddd\"/>\n" << label(kLeft - 8, y + 4, "end", text(loss));
  }
  for (int part = 0; part <= 4; ++part) {
    const double step = scale.steps * part / 4;
    out << label(scale.x(step), kHeight - kBottom + 18, "middle", text(static_cast<long>(step)));
  }
  out << line_of(losses, scale, "stroke=\"#9ecae1\" stroke-width=\"1\"") << line_of(smooth, scale, "stroke=\"#08519c\" stroke-width=\"2\"");
  const double y = scale.y(unigram);
  out << "<line x1=\"" << kLeft << "\" x2=\"" << kWidth - kRight << "\" y1=\"" << y << "\" y2=\"" << y << "\" stroke=\"#d94801\" stroke-dasharray=\"6 4\"/>\n"
      << label(kWidth - kRight, y - 6, "end", "unigram, held out") << label(kWidth / 2, kHeight - 10, "middle", "step") << label(kLeft, 18, "start", "training loss, nats per token")
      << "</svg>\n";
  return out.str();
}

troupe::Result<void> write_reports(const Config& config, const Outcome& outcome) {
  std::error_code error;
  std::filesystem::create_directories(config.out, error);
  if (error) return troupe::fail(troupe::Errc::kIo, text("can't make folder ", config.out, ": ", error.message()));
  nlohmann::json json = {{"steps", outcome.losses.size()}, {"stopped", outcome.stopped}, {"losses", outcome.losses}, {"seconds", outcome.seconds},
                         {"patches_per_second", outcome.patches_per_second}, {"tokens_per_second", outcome.tokens_per_second},
                         {"vision", config.vision}, {"language", config.language},
                         {"held_out", {{"true", outcome.held_out.with_pictures}, {"shuffled", outcome.held_out.shuffled}, {"none", outcome.held_out.without}, {"unigram", outcome.held_out.unigram}}}};
  for (const auto& one : outcome.captions) json["captions"].push_back({{"picture", one.picture}, {"truth", one.truth}, {"generated", one.generated}, {"seen", one.seen}});
  const std::filesystem::path folder = config.out;
  if (auto ok = write_whole(folder / "results.json", json.dump(1) + "\n"); !ok) return ok;
  return write_whole(folder / "loss.svg", loss_svg(outcome.losses, outcome.held_out.unigram));
}

}  // namespace stamps
