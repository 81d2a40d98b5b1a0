#include <troupe/train/tensor_folder.hpp>

#include <cstdio>
#include <filesystem>
#include <set>
#include <system_error>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include <troupe/base/text.hpp>

namespace troupe {
namespace {

constexpr const char* kWhole = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

/// Tensor -> file, as the index says.
Result<std::map<std::string, std::string>> read_index(const std::string& path) {
  const auto content = read_file(path);
  if (!content) return fail(content.error());
  const auto json = nlohmann::json::parse(*content, nullptr, false);
  if (!json.is_object() || !json.contains("weight_map") || !json.at("weight_map").is_object()) {
    return fail(Errc::kBadData, text(path, ": expected a JSON object with 'weight_map'"));
  }
  std::map<std::string, std::string> out;
  for (const auto& [name, file] : json.at("weight_map").items()) {
    const std::string shard = file.is_string() ? file.get<std::string>() : "";
    if (shard.empty() || shard.find('/') != std::string::npos) return fail(Errc::kBadData, text(path, ": weight_map['", name, "'] must be the name of a file in the folder"));
    out.emplace(name, shard);
  }
  return out;
}

std::string shard_name(std::size_t number, std::size_t count) {
  char out[64];
  std::snprintf(out, sizeof out, "model-%05zu-of-%05zu.safetensors", number, count);
  return out;
}

/// Names of each shard: filled in order of names up to the limit.
std::vector<std::vector<std::string>> shards_of(const std::map<std::string, at::Tensor>& tensors, std::int64_t most) {
  std::vector<std::vector<std::string>> out(1);
  std::int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) {
    const auto size = static_cast<std::int64_t>(tensor.nbytes());
    if (!out.back().empty() && bytes + size > most) {
      out.emplace_back();
      bytes = 0;
    }
    out.back().push_back(name);
    bytes += size;
  }
  return out;
}

Result<void> write_index(const std::string& folder, const std::map<std::string, at::Tensor>& tensors, const std::vector<std::vector<std::string>>& shards) {
  std::int64_t total = 0;
  nlohmann::json map = nlohmann::json::object();
  for (std::size_t i = 0; i < shards.size(); ++i) {
    for (const auto& name : shards[i]) {
      map[name] = shard_name(i + 1, shards.size());
      total += static_cast<std::int64_t>(tensors.at(name).nbytes());
    }
  }
  return write_file(folder + "/" + kIndex, nlohmann::json{{"metadata", {{"total_size", total}}}, {"weight_map", map}}.dump(2) + "\n");
}

}  // namespace

Result<std::shared_ptr<const TensorFolder>> TensorFolder::open(const std::string& folder) {
  std::shared_ptr<TensorFolder> out(new TensorFolder);
  out->folder_ = folder;
  std::error_code ignored;
  const std::string index = folder + "/" + kIndex;
  if (!std::filesystem::exists(index, ignored)) {
    const auto file = SafetensorsFile::open(folder + "/" + kWhole);
    if (!file) return fail(file.error().code, text(file.error().message, "; a checkpoint folder has ", kWhole, " or ", kIndex), {});
    for (const auto& [name, stored] : (*file)->header().tensors) out->files_.emplace(name, *file);
    return out;
  }
  const auto map = read_index(index);
  if (!map) return fail(map.error());
  std::map<std::string, std::shared_ptr<const SafetensorsFile>> shards;
  for (const auto& [name, shard] : *map) {
    auto& file = shards[shard];
    if (!file) {
      auto opened = SafetensorsFile::open(folder + "/" + shard);
      if (!opened) return fail(opened.error());
      file = *opened;
    }
    if (!file->has(name)) return fail(Errc::kBadData, text(index, ": says that tensor '", name, "' is in ", shard, ", which does not have it"));
    out->files_.emplace(name, file);
  }
  for (const auto& [shard, file] : shards) {
    for (const auto& [name, stored] : file->header().tensors) {
      const auto found = map->find(name);
      if (found == map->end() || found->second != shard) return fail(Errc::kBadData, text(index, ": tensor '", name, "' of ", shard, found == map->end() ? " is not in the index" : text(" is in ", found->second, ", too")));
    }
  }
  return out;
}

std::vector<std::string> TensorFolder::names() const {
  std::vector<std::string> out;
  for (const auto& [name, file] : files_) out.push_back(name);
  return out;
}

Result<std::shared_ptr<const SafetensorsFile>> TensorFolder::file_of(const std::string& name) const {
  const auto found = files_.find(name);
  if (found == files_.end()) return fail(Errc::kMismatch, text(folder_, ": there is no tensor '", name, "' in its safetensors files"));
  return found->second;
}

Result<StoredTensor> TensorFolder::describe(const std::string& name) const {
  const auto file = file_of(name);
  if (!file) return fail(file.error());
  return (*file)->header().tensors.at(name);
}

Result<void> TensorFolder::expect(const std::string& name, std::span<const std::int64_t> shape) const {
  const auto file = file_of(name);
  if (!file) return fail(file.error());
  return (*file)->expect(name, shape);
}

Result<at::Tensor> TensorFolder::read(const std::string& name, const TensorPart& part) const {
  const auto file = file_of(name);
  if (!file) return fail(file.error());
  return (*file)->read(name, part);
}

std::int64_t TensorFolder::bytes_read() const noexcept {
  std::set<const SafetensorsFile*> files;
  std::int64_t out = 0;
  for (const auto& [name, file] : files_) {
    if (files.insert(file.get()).second) out += file->bytes_read();
  }
  return out;
}

Result<void> write_tensor_folder(const std::string& folder, const std::map<std::string, at::Tensor>& tensors, FolderOptions options) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail(Errc::kIo, text(folder, ": can't be made: ", error.message()));
  const auto shards = shards_of(tensors, options.max_shard_bytes);
  const std::map<std::string, std::string> metadata = {{"format", "pt"}};   // transformers asks for it
  if (shards.size() == 1) {
    if (auto ok = write_safetensors(folder + "/" + kWhole, tensors, metadata); !ok) return ok;
    std::filesystem::remove(folder + "/" + kIndex, error);   // one of an earlier, larger write would win
    return {};
  }
  for (std::size_t i = 0; i < shards.size(); ++i) {
    std::map<std::string, at::Tensor> part;
    for (const auto& name : shards[i]) part.emplace(name, tensors.at(name));
    if (auto ok = write_safetensors(folder + "/" + shard_name(i + 1, shards.size()), part, metadata); !ok) return ok;
  }
  return write_index(folder, tensors, shards);
}

}  // namespace troupe
