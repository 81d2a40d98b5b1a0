#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/base/result.hpp>

namespace troupe {

/// One tensor of a file, as its header describes it.
struct StoredTensor {
  std::string dtype;                 ///< As written: "F32", "BF16", "I64", ...
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0;            ///< First byte in the file.
  std::int64_t bytes = 0;
};

/// The parsed header of a safetensors file.
struct SafetensorsHeader {
  std::map<std::string, StoredTensor> tensors;
  std::map<std::string, std::string> metadata;
  std::int64_t data_begin = 0;       ///< First byte after the header.
};

/// Longest header that is read, as in the format's own implementation.
inline constexpr std::int64_t kMaxSafetensorsHeader = 100'000'000;

/// Parses the beginning of a file: 8 bytes of length and the JSON header. `file_size` bounds the data; `name` is for
/// messages. Pure; knows no LibTorch. Fails with: kBadData naming file, tensor, expected and got: cut short, header
/// too long, not JSON, not UTF-8, unknown dtype, a name twice, offsets that overlap, leave holes, go past the end or
/// do not fit dtype x shape.
/// Source of the format: huggingface/safetensors, README, "Format".
[[nodiscard]] Result<SafetensorsHeader> parse_safetensors_header(std::string_view bytes, std::int64_t file_size, const std::string& name);

/// Parses the index of a checkpoint in several files (model.safetensors.index.json): tensor -> file name. `name` is for messages.
/// Fails with: kBadData for what is not JSON or not UTF-8, has no weight_map, names a tensor twice or a file outside its folder.
[[nodiscard]] Result<std::map<std::string, std::string>> parse_weight_map(std::string_view content, const std::string& name);

}  // namespace troupe
