#pragma once

#include <string>

#include "parallelize.hpp"

namespace qwen_vl {

/// Loads a Hugging Face folder into the model: each rank reads only its own parts of the safetensors files. Names as
/// published ("visual.", "model.") or as transformers 4.52 and later hold them ("model.visual.", "model.language_model.").
/// Fails with: what the files have wrong; kMismatch naming a tensor that is missing, has another shape, or is not
/// part of the model.
[[nodiscard]] troupe::Result<void> load_checkpoint(Model& model, const ModelConfig& config, const std::string& folder);

/// Writes config.json and the safetensors files, in published names, so that transformers loads the folder.
/// Fails with: kIo.
[[nodiscard]] troupe::Result<void> save_checkpoint(const Model& model, const ModelConfig& config, const std::string& folder);

}  // namespace qwen_vl
