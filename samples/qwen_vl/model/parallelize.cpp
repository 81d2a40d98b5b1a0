#include "parallelize.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <troupe/base/text.hpp>
#include <troupe/stage/environment.hpp>

namespace qwen_vl {
namespace {

using troupe::Result;
using troupe::text;

Result<void> check_axes(const char* stage, const troupe::Mesh& mesh, const std::vector<std::string>& known) {
  for (const auto& axis : mesh.axes()) {
    if (std::ranges::find(known, axis.name) != known.end()) continue;
    std::string names;
    for (const auto& name : known) names += (names.empty() ? "" : ", ") + name;
    return troupe::fail(troupe::Errc::kInvalidArgument, text(stage, ": unknown axis '", axis.name, "'; accepted: ", names));
  }
  return {};
}

Result<troupe::Runtime> make_runtime(const LayoutOptions& options) {
  troupe::RuntimeOptions out;
  out.environment = troupe::torch_environment({.track_memory = options.rank_bytes > 0});
  if (options.rank_bytes > 0) {
    for (int device = 0; device < std::max(options.vision.size(), options.language.size()); ++device) {
      out.simulated_devices.push_back({text("simulated-", device), 2 * options.rank_bytes});
    }
  }
  return troupe::Runtime::create(std::move(out));
}

troupe::StageOptions stage_options(const char* name, const troupe::Mesh& mesh, const LayoutOptions& options) {
  troupe::StageOptions out;
  out.name = name;
  out.mesh = mesh;
  out.dtype = options.dtype;
  if (options.rank_bytes > 0) out.per_rank = {.gpus = 0.5, .gpu_memory_bytes = options.rank_bytes};
  return out;
}

}  // namespace

Result<Model> parallelize(const ModelConfig& config, const LayoutOptions& options) {
  if (auto ok = check(config); !ok) return troupe::fail(ok.error());
  if (auto ok = check_axes("vision", options.vision, {"dp", "sp"}); !ok) return troupe::fail(ok.error());
  if (auto ok = check_axes("language", options.language, {"dp", "tp"}); !ok) return troupe::fail(ok.error());
  auto runtime = make_runtime(options);
  if (!runtime) return troupe::fail(runtime.error());
  troupe::Graph graph{*runtime, {.seed = options.seed}};
  auto vision = graph.stage<Vision>(stage_options("vision", options.vision, options), config.vision);
  if (!vision) return troupe::fail(vision.error());
  auto language = graph.stage<Language>(stage_options("language", options.language, options), config.language);
  if (!language) return troupe::fail(language.error());
  // every tp rank computes the whole gradient of the picture tokens: one is taken
  graph.connect(vision->out(), language->in<1>(), {.to = troupe::by_sample("dp", troupe::Grad::kReplicated)});
  auto prompts = graph.source<Prompts>({.name = "prompts", .prefetch = 1}, 0);
  if (!prompts) return troupe::fail(prompts.error());
  Model out{std::move(graph), *vision, *language, *prompts};
  feed(out, out.prompts);
  return out;
}

std::string checkpoint_name(const std::string& full) {
  constexpr std::string_view kVision = "vision.";
  constexpr std::string_view kLanguage = "language.";
  if (full.starts_with(kVision)) return "visual." + full.substr(kVision.size());
  if (full.starts_with(kLanguage)) return full.substr(kLanguage.size());
  return full;
}

}  // namespace qwen_vl
