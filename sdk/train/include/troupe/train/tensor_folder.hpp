#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <troupe/train/safetensors.hpp>

namespace troupe {

/// The tensors of a checkpoint folder as Hugging Face lays it out: model.safetensors, or model.safetensors.index.json
/// with its shards. Thread: any, at once.
class TensorFolder final : public TensorReader {
 public:
  /// Reads the headers of all files. Fails with: kIo (no such folder or file), kBadData (what a header has wrong; an index that
  /// names a tensor its file lacks, or a tensor that two files have).
  [[nodiscard]] static Result<std::shared_ptr<const TensorFolder>> open(const std::string& folder);

  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] bool has(const std::string& name) const { return files_.contains(name); }
  [[nodiscard]] Result<StoredTensor> describe(const std::string& name) const;

  [[nodiscard]] Result<void> expect(const std::string& name, std::span<const std::int64_t> shape) const override;
  [[nodiscard]] Result<at::Tensor> read(const std::string& name, const TensorPart& part) const override;

  /// Of tensor data, over all files.
  [[nodiscard]] std::int64_t bytes_read() const noexcept;

 private:
  TensorFolder() = default;
  [[nodiscard]] Result<std::shared_ptr<const SafetensorsFile>> file_of(const std::string& name) const;
  std::string folder_;
  std::map<std::string, std::shared_ptr<const SafetensorsFile>> files_;   ///< By tensor.
};

struct FolderOptions {
  std::int64_t max_shard_bytes = std::int64_t{5} << 30;   ///< As transformers cuts by default.
};

/// Writes a folder's tensors: one model.safetensors, or shards and their index past `max_shard_bytes`. What was there of the
/// same names is replaced file by file, the index last.
/// Fails with: what write_safetensors() fails with.
[[nodiscard]] Result<void> write_tensor_folder(const std::string& folder, const std::map<std::string, at::Tensor>& tensors, FolderOptions options = {});

/// Writes `content` to `path`, whole or not at all, flushed to disk. Fails with: kIo naming the file.
[[nodiscard]] Result<void> write_file(const std::string& path, std::string_view content);

/// The whole of a file. Fails with: kIo naming the file.
[[nodiscard]] Result<std::string> read_file(const std::string& path);

}  // namespace troupe
