#include <troupe/train/resume.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <system_error>
#include <vector>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include <troupe/base/text.hpp>
#include <troupe/train/files.hpp>
#include <troupe/train/safetensors.hpp>

namespace troupe {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kFormat = 1;
constexpr const char* kAbout = "training.json";   // written last: a folder that has it is whole
constexpr const char* kParameters = "parameters.safetensors";
constexpr const char* kOptimizer = "optimizer.safetensors";
constexpr std::string_view kPrefix = "step-";

std::string folder_name(std::int64_t step) {
  char out[32];
  std::snprintf(out, sizeof out, "step-%08lld", static_cast<long long>(step));
  return out;
}

/// Complete checkpoints, oldest first.
std::vector<fs::path> checkpoints_in(const std::string& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    const std::string digits = name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : "";
    if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos || !fs::exists(entry.path() / kAbout, error)) continue;
    out.push_back(entry.path());
  }
  std::ranges::sort(out, {}, [](const fs::path& path) { return std::pair(path.filename().string().size(), path.filename().string()); });
  return out;
}

Result<void> write_all(const fs::path& folder, const Graph& graph, const Optimizer& optimizer, const SaveOptions& options) {
  const auto sources = graph.source_states(options.timeout);
  if (!sources) return fail(sources.error());
  const auto parameters = graph.parameters(options.timeout);
  if (!parameters) return fail(parameters.error());
  if (auto ok = write_safetensors(folder / kParameters, *parameters); !ok) return ok;
  const auto state = optimizer.state(options.timeout);
  if (!state) return fail(state.error());
  if (auto ok = write_safetensors(folder / kOptimizer, *state); !ok) return ok;
  const json about = {{"format", kFormat}, {"step", optimizer.steps()}, {"seed", graph.seed()}, {"sources", *sources}, {"note", options.note}};
  return write_file(folder / kAbout, about.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
}

Result<json> read_about(const std::string& path) {
  const std::string file = path + "/" + kAbout;
  const auto content = read_file(file);
  if (!content) return fail(content.error());
  json about = json::parse(*content, nullptr, false);
  const auto has = [&](const char* key, json::value_t type) { return about.contains(key) && about.at(key).type() == type; };
  const bool is_whole = about.is_object() && has("step", json::value_t::number_unsigned) && has("seed", json::value_t::number_unsigned) &&
                        has("format", json::value_t::number_unsigned) && has("sources", json::value_t::object) && has("note", json::value_t::string);
  if (!is_whole) return fail(Errc::kBadData, text(file, ": is broken; remove the folder to resume from the checkpoint before it"));
  if (about.at("format") != kFormat) return fail(Errc::kBadData, text(file, ": has format ", about.at("format").dump(), "; this version reads ", kFormat));
  return about;
}

}  // namespace

Result<std::string> save_training(const Graph& graph, const Optimizer& optimizer, const SaveOptions& options) {
  const fs::path place = fs::path(options.folder) / folder_name(optimizer.steps());
  const fs::path part = place.string() + ".part";
  std::error_code error;
  fs::remove_all(part, error);
  fs::create_directories(part, error);
  if (error) return fail(Errc::kIo, text(part.string(), ": can't be made: ", error.message()));
  if (auto ok = write_all(part, graph, optimizer, options); !ok) {
    fs::remove_all(part, error);
    return fail(ok.error());
  }
  fs::remove_all(place, error);   // of an earlier run that got this far
  fs::rename(part, place, error);
  if (error) return fail(Errc::kIo, text(part.string(), ": can't be renamed to ", place.string(), ": ", error.message()));
  auto all = checkpoints_in(options.folder);
  for (std::size_t i = 0; options.keep > 0 && i + static_cast<std::size_t>(options.keep) < all.size(); ++i) fs::remove_all(all[i], error);
  return place.string();
}

Result<std::optional<SavedTraining>> latest_training(const std::string& folder) {
  const auto all = checkpoints_in(folder);
  if (all.empty()) return std::nullopt;
  const auto about = read_about(all.back());
  if (!about) return fail(about.error());
  return SavedTraining{all.back(), about->at("step").get<std::int64_t>(), about->at("note").get<std::string>()};
}

Result<void> resume_training(const Graph& graph, const Optimizer& optimizer, const SavedTraining& saved, Duration timeout) {
  const auto about = read_about(saved.path);
  if (!about) return fail(about.error());
  if (about->at("seed") != graph.seed()) {
    return fail(Errc::kMismatch, text(saved.path, ": was trained with seed ", about->at("seed").dump(), ", this run has ", graph.seed(), "; use the same"));
  }
  std::map<std::string, std::string> sources;
  for (const auto& [name, state] : about->at("sources").items()) {
    if (!state.is_string()) return fail(Errc::kBadData, text(saved.path, ": the state of source ", name, " is no text"));
    sources.emplace(name, state.get<std::string>());
  }
  const auto parameters = SafetensorsFile::open(saved.path + "/" + kParameters);
  if (!parameters) return fail(parameters.error());
  const auto state = SafetensorsFile::open(saved.path + "/" + kOptimizer);
  if (!state) return fail(state.error());
  if (auto ok = graph.load(*parameters, [](const std::string& name) { return name; }, timeout); !ok) return ok;
  if (auto ok = optimizer.load(*state, about->at("step").get<std::int64_t>(), timeout); !ok) return ok;
  return graph.restore_sources(sources, timeout);
}

}  // namespace troupe
