#include <troupe/train/tensor_folder.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include <troupe/base/text.hpp>
#include "folder_names.hpp"

namespace troupe {
namespace {

using Declared = TensorFolderWriter::Declared;

std::string shard_name(std::size_t index, std::size_t count) {
  if (count == 1) return detail::kWholeFile;
  char out[64];
  std::snprintf(out, sizeof out, "model-%05zu-of-%05zu.safetensors", index + 1, count);
  return out;
}

bool is_shard_name(const std::string& name) {
  unsigned index = 0, count = 0;
  int end = 0;
  return std::sscanf(name.c_str(), "model-%5u-of-%5u.safetensors%n", &index, &count, &end) == 2 && end == static_cast<int>(name.size());
}

/// What each shard holds: filled in order of names up to the limit.
std::vector<std::map<std::string, Declared>> shards_of(const std::map<std::string, Declared>& tensors, std::int64_t most) {
  std::vector<std::map<std::string, Declared>> out(1);
  std::int64_t bytes = 0;
  for (const auto& [name, declared] : tensors) {
    if (!out.back().empty() && bytes + declared.bytes() > most) {
      out.emplace_back();
      bytes = 0;
    }
    out.back().emplace(name, declared);
    bytes += declared.bytes();
  }
  return out;
}

Result<void> remove_file(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::remove(path, error);
  if (error) return fail(Errc::kIo, text(path.string(), ": can't be removed: ", error.message()));
  return {};
}

/// Shards of an earlier write that the new checkpoint does not have.
Result<void> remove_stale_shards(const std::string& folder, const std::set<std::string>& current) {
  std::error_code error;
  std::vector<std::filesystem::path> stale;
  for (auto entry = std::filesystem::directory_iterator(folder, error); !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (is_shard_name(name) && !current.contains(name)) stale.push_back(entry->path());
  }
  if (error) return fail(Errc::kIo, text(folder, ": can't be listed: ", error.message()));
  for (const auto& path : stale) {
    if (auto ok = remove_file(path); !ok) return ok;
  }
  return {};
}

}  // namespace

Result<TensorFolderWriter> TensorFolderWriter::create(const std::string& folder, const std::map<std::string, Declared>& tensors, FolderOptions options) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail(Errc::kIo, text(folder, ": can't be made: ", error.message()));
  const auto shards = shards_of(tensors, options.max_shard_bytes);
  TensorFolderWriter out;
  out.folder_ = folder;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    auto writer = SafetensorsWriter::create(folder + "/" + shard_name(i, shards.size()), shards[i], {{"format", "pt"}});   // transformers asks for it
    if (!writer) return fail(writer.error());
    out.shards_.push_back(std::move(*writer));
    for (const auto& [name, declared] : shards[i]) {
      out.shard_of_.emplace(name, i);
      out.total_bytes_ += declared.bytes();
    }
  }
  return out;
}

Result<void> TensorFolderWriter::write(const std::string& name, const at::Tensor& tensor) {
  const auto found = shard_of_.find(name);
  if (found == shard_of_.end()) return fail(Errc::kMismatch, text(folder_, ", tensor '", name, "': was not declared"));
  return shards_[found->second].write(name, tensor);
}

Result<void> TensorFolderWriter::finish() {
  const std::string index = folder_ + "/" + detail::kIndexFile;
  for (auto& shard : shards_) {
    if (auto ok = shard.seal(); !ok) return ok;
  }
  if (auto ok = remove_file(index); !ok) return ok;   // first, so that old and new shards are never taken as one checkpoint
  if (shards_.size() > 1) {
    if (auto ok = remove_file(folder_ + "/" + detail::kWholeFile); !ok) return ok;
  }
  std::set<std::string> current;
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    if (auto ok = shards_[i].finish(); !ok) return ok;
    current.insert(shard_name(i, shards_.size()));
  }
  if (shards_.size() > 1) {
    nlohmann::json map = nlohmann::json::object();
    for (const auto& [name, shard] : shard_of_) map[name] = shard_name(shard, shards_.size());
    const nlohmann::json json = {{"metadata", {{"total_size", total_bytes_}}}, {"weight_map", map}};
    if (auto ok = write_file(index, json.dump(2) + "\n"); !ok) return ok;
  }
  return remove_stale_shards(folder_, current);
}

Result<void> write_tensor_folder(const std::string& folder, const std::map<std::string, at::Tensor>& tensors, FolderOptions options) {
  std::map<std::string, Declared> declared;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined()) return fail(Errc::kInvalidArgument, text(folder, ", tensor '", name, "': is undefined"));
    declared.emplace(name, Declared{tensor.scalar_type(), tensor.sizes().vec()});
  }
  auto writer = TensorFolderWriter::create(folder, declared, options);
  if (!writer) return fail(writer.error());
  for (const auto& [name, tensor] : tensors) {
    if (auto ok = writer->write(name, tensor); !ok) return ok;
  }
  return writer->finish();
}

}  // namespace troupe
