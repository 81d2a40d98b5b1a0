#include "checkpoint.hpp"

#include <filesystem>
#include <functional>
#include <set>
#include <system_error>
#include <utility>

#include <troupe/base/text.hpp>
#include <troupe/train/tensor_folder.hpp>

namespace qwen_vl {
namespace {

using namespace std::chrono_literals;
using troupe::Result;
using troupe::text;

constexpr troupe::Duration kTimeout = 60min;   // a slow disk, a large model

/// "visual.x" -> "model.visual.x", "model.x" -> "model.language_model.x": names inside transformers 4.52 and later.
std::string inner_name(const std::string& published) {
  if (published.starts_with("visual.")) return "model." + published;
  if (published.starts_with("model.")) return "model.language_model." + published.substr(6);
  return published;
}

/// Names of both stages' parameters as the folder has them.
using Names = std::function<std::string(const std::string&)>;
Names names_in(const troupe::TensorFolder& folder) {
  if (!folder.has("model.language_model.embed_tokens.weight")) return checkpoint_name;
  return [](const std::string& full) { return inner_name(checkpoint_name(full)); };
}

/// Refuses tensors that the model has no place for: they would be lost without a word.
Result<void> check_all_used(const Model& model, const ModelConfig& config, const troupe::TensorFolder& folder, const Names& name_of) {
  std::set<std::string> used;
  if (config.language.tied) used.insert("lm_head.weight");   // some files repeat the embedding
  for (const auto& pool : {&model.vision.pool(), &model.language.pool()}) {
    const auto described = pool->call<&troupe::detail::StageHost::describe>().get(kTimeout);
    if (!described) return troupe::fail(described.error());
    for (const auto& name : described->front().names) used.insert(name_of(name));
  }
  for (const auto& name : folder.names()) {
    if (!used.contains(name)) return troupe::fail(troupe::Errc::kMismatch, text("the checkpoint has tensor '", name, "', which the model of its config.json has not"));
  }
  return {};
}

}  // namespace

Result<void> load_checkpoint(Model& model, const ModelConfig& config, const std::string& folder) {
  const auto files = troupe::TensorFolder::open(folder);
  if (!files) return troupe::fail(files.error());
  const Names name_of = names_in(**files);
  if (auto ok = check_all_used(model, config, **files, name_of); !ok) return ok;
  if (auto ok = model.vision.load(*files, name_of, kTimeout); !ok) return ok;
  return model.language.load(*files, name_of, kTimeout);
}

Result<void> save_checkpoint(const Model& model, const ModelConfig& config, const std::string& folder) {
  std::map<std::string, at::Tensor> all;
  for (auto tensors : {model.vision.parameters(kTimeout), model.language.parameters(kTimeout)}) {
    if (!tensors) return troupe::fail(tensors.error());
    for (auto& [name, tensor] : *tensors) all.emplace(checkpoint_name(name), std::move(tensor));
  }
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return troupe::fail(troupe::Errc::kIo, text(folder, ": can't be made: ", error.message()));
  if (auto ok = troupe::write_file(folder + "/config.json", config_json(config)); !ok) return ok;
  return troupe::write_tensor_folder(folder, all);
}

}  // namespace qwen_vl
