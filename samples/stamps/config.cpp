#include "config.hpp"

#include <algorithm>
#include <map>
#include <variant>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <troupe/base/text.hpp>

#include "common/settings.hpp"

namespace stamps {
namespace {

using troupe::Errc;
using troupe::Result;
using troupe::text;

samples::Settings settings_of(Config& c) {
  return {{"data", {&c.data, "folder of pictures (PNG) with captions beside them"}},
          {"out", {&c.out, "folder for results.json, loss.svg, report.html and checkpoints"}},
          {"steps", {&c.steps, "optimizer steps"}},
          {"batch", {&c.batch, "pictures per step"}},
          {"micro_batches", {&c.micro_batches, "parts a batch is cut into"}},
          {"seed", {&c.seed, "of initial values and order"}},
          {"log_every", {&c.log_every, "steps between lines when there is no terminal"}},
          {"save_every", {&c.save_every, "steps between checkpoints that --resume goes on from; 0: none"}},
          {"resume", {&c.resume, "go on from the newest checkpoint in out"}},
          {"learning_rate", {&c.learning_rate, "peak, after the warm-up"}},
          {"width", {&c.width, "of both models"}},
          {"heads", {&c.heads, "of both models"}},
          {"layers", {&c.layers, "of both models"}},
          {"vision", {&c.vision, "mesh of the encoder, e.g. dp=1,sp=2"}},
          {"language", {&c.language, "mesh of the decoder, e.g. tp=2"}}};
}

/// The axes that the stage's module and edges know; on another its ranks would be idle copies.
Result<void> check_mesh(const std::string& stage, const std::string& mesh, const std::vector<std::string>& known) {
  const auto parsed = troupe::Mesh::parse(mesh);
  if (!parsed) return troupe::fail(Errc::kInvalidArgument, text(stage, " = '", mesh, "': ", parsed.error().message));
  for (const auto& axis : parsed->axes()) {
    if (std::ranges::find(known, axis.name) != known.end()) continue;
    std::string names;
    for (const auto& name : known) names += (names.empty() ? "" : ", ") + name;
    return troupe::fail(Errc::kInvalidArgument, text(stage, " = '", mesh, "': unknown axis '", axis.name, "'; accepted: ", names));
  }
  return {};
}

Result<void> check(const Config& c) {
  const auto positive = [](std::int64_t value, const char* name) -> Result<void> {
    if (value >= 1) return {};
    return troupe::fail(Errc::kInvalidArgument, text(name, " must be >= 1, got ", value));
  };
  for (const auto& [value, name] : {std::pair{c.steps, "steps"}, {c.batch, "batch"}, {c.micro_batches, "micro_batches"}, {c.log_every, "log_every"},
                                    {c.width, "width"}, {c.heads, "heads"}, {c.layers, "layers"}}) {
    if (auto ok = positive(value, name); !ok) return ok;
  }
  if (!(c.learning_rate > 0)) return troupe::fail(Errc::kInvalidArgument, text("learning_rate must be > 0, got ", c.learning_rate));
  if (c.width % c.heads != 0) return troupe::fail(Errc::kInvalidArgument, text("width ", c.width, " must be divisible by heads ", c.heads));
  if (auto ok = check_mesh("vision", c.vision, {"dp", "sp"}); !ok) return ok;
  if (auto ok = check_mesh("language", c.language, {"dp", "tp"}); !ok) return ok;
  return {};
}

}  // namespace

Result<Parsed> parse(int argc, char** argv) {
  Parsed out;
  const auto settings = settings_of(out.config);
  CLI::App app{"Trains a small vision-language model on Tux Paint's stamps: pictures in, captions out."};
  std::string file;
  app.add_option("--config", file, "TOML file with the options below as keys; flags win");
  std::map<std::string, std::string> flags;
  for (const auto& [name, setting] : settings) {
    auto* const option = app.add_option("--" + name, flags[name], setting.help);
    if (std::holds_alternative<bool*>(setting.target)) option->expected(0, 1);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    out.exit_code = app.exit(error) == 0 ? 0 : 2;
    return out;
  }
  if (!file.empty()) {
    if (auto read = samples::read_settings(file, settings); !read) return troupe::fail(read.error());
  }
  for (const auto& [name, given] : flags) {
    if (app.count("--" + name) == 0) continue;
    const bool is_switch = given.empty() && std::holds_alternative<bool*>(settings.at(name).target);
    if (auto ok = samples::set(settings, name, is_switch ? "true" : given); !ok) return troupe::fail(ok.error());
  }
  if (auto ok = check(out.config); !ok) return troupe::fail(ok.error());
  return out;
}

}  // namespace stamps
