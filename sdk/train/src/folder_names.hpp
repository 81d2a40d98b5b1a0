#pragma once

namespace troupe::detail {

/// File names of a checkpoint folder, as transformers has them.
inline constexpr const char* kWholeFile = "model.safetensors";
inline constexpr const char* kIndexFile = "model.safetensors.index.json";

}  // namespace troupe::detail
