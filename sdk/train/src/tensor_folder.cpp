#include <troupe/train/tensor_folder.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include <ATen/ATen.h>

#include <troupe/base/text.hpp>
#include "folder_names.hpp"

namespace troupe {

using detail::kIndexFile;
using detail::kWholeFile;

namespace {

/// Nothing of a shard may be left out by the index or promised to another shard.
Result<void> check_listed(const SafetensorsFile& file, const std::string& shard, const std::map<std::string, std::string>& map, const std::string& index) {
  for (const auto& [name, stored] : file.header().tensors) {
    const auto found = map.find(name);
    if (found == map.end()) return fail(Errc::kBadData, text(index, ": leaves out tensor '", name, "', which is in ", shard));
    if (found->second != shard) return fail(Errc::kBadData, text(index, ": tensor '", name, "' is in ", found->second, " and in ", shard, ", too"));
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const TensorFolder>> TensorFolder::open(const std::string& folder) {
  std::shared_ptr<TensorFolder> out(new TensorFolder);
  out->folder_ = folder;
  std::error_code ignored;
  const std::string index = folder + "/" + kIndexFile;
  const std::string whole = folder + "/" + kWholeFile;
  const bool has_index = std::filesystem::exists(index, ignored);
  const bool has_whole = std::filesystem::exists(whole, ignored);
  if (has_index && has_whole) return fail(Errc::kBadData, text(folder, ": has ", kWholeFile, " and ", kIndexFile, "; remove the one that is not meant"));
  if (!has_index && !has_whole) return fail(Errc::kIo, text(folder, ": is no checkpoint folder: there is neither ", kWholeFile, " nor ", kIndexFile));
  auto ok = has_index ? out->open_shards(index) : out->open_whole(whole);
  if (!ok) return fail(std::move(ok.error()));
  return out;
}

Result<void> TensorFolder::open_whole(const std::string& path) {
  const auto file = SafetensorsFile::open(path);
  if (!file) return fail(file.error());
  all_.push_back(*file);
  for (const auto& [name, stored] : (*file)->header().tensors) files_.emplace(name, *file);
  return {};
}

Result<void> TensorFolder::open_shards(const std::string& index) {
  const auto content = read_file(index);
  if (!content) return fail(content.error());
  const auto map = parse_weight_map(*content, index);
  if (!map) return fail(map.error());
  std::map<std::string, std::shared_ptr<const SafetensorsFile>> shards;
  for (const auto& [name, shard] : *map) {
    auto& file = shards[shard];
    if (!file) {
      auto opened = SafetensorsFile::open(folder_ + "/" + shard);
      if (!opened) return fail(caused_by(opened.error(), opened.error().code, text(index, ": its shard ", shard, " can't be used")));
      if (auto ok = check_listed(**opened, shard, *map, index); !ok) return ok;
      file = *opened;
      all_.push_back(file);
    }
    if (!file->has(name)) return fail(Errc::kBadData, text(index, ": tensor '", name, "' must be in ", shard, ", which does not have it"));
    files_.emplace(name, file);
  }
  return {};
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

Result<void> TensorFolder::read_into(const std::string& name, const TensorPart& part, const at::Tensor& out) const {
  const auto file = file_of(name);
  if (!file) return fail(file.error());
  return (*file)->read_into(name, part, out);
}

std::int64_t TensorFolder::bytes_read() const noexcept {
  std::int64_t out = 0;
  for (const auto& file : all_) out += file->bytes_read();
  return out;
}

std::int64_t TensorFolder::bytes_fetched() const noexcept {
  std::int64_t out = 0;
  for (const auto& file : all_) out += file->bytes_fetched();
  return out;
}

}  // namespace troupe
