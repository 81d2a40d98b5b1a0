#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <troupe/train/files.hpp>
#include <troupe/train/safetensors.hpp>

namespace troupe {

/// The tensors of a checkpoint folder as Hugging Face lays it out: model.safetensors, or model.safetensors.index.json
/// with its shards. Thread: any, at once.
class TensorFolder final : public TensorReader {
 public:
  /// Reads the headers of all files. Fails with: kIo (no such folder or file), kBadData (what a header or the index has
  /// wrong; an index that names a tensor its file lacks; a tensor that two files have or that the index leaves out; both
  /// a model.safetensors and an index, since nothing says which is meant).
  [[nodiscard]] static Result<std::shared_ptr<const TensorFolder>> open(const std::string& folder);

  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] bool has(const std::string& name) const { return files_.contains(name); }
  [[nodiscard]] Result<StoredTensor> describe(const std::string& name) const;

  [[nodiscard]] Result<void> expect(const std::string& name, std::span<const std::int64_t> shape) const override;
  [[nodiscard]] Result<at::Tensor> read(const std::string& name, const TensorPart& part) const override;
  [[nodiscard]] Result<void> read_into(const std::string& name, const TensorPart& part, const at::Tensor& out) const override;

  [[nodiscard]] std::int64_t bytes_read() const noexcept;      ///< SafetensorsFile::bytes_read() of all files.
  [[nodiscard]] std::int64_t bytes_fetched() const noexcept;   ///< SafetensorsFile::bytes_fetched() of all files.

 private:
  TensorFolder() = default;
  [[nodiscard]] Result<void> open_whole(const std::string& path);
  [[nodiscard]] Result<void> open_shards(const std::string& index);
  [[nodiscard]] Result<std::shared_ptr<const SafetensorsFile>> file_of(const std::string& name) const;
  std::string folder_;
  std::vector<std::shared_ptr<const SafetensorsFile>> all_;
  std::map<std::string, std::shared_ptr<const SafetensorsFile>> files_;   ///< By tensor.
};

struct FolderOptions {
  std::int64_t max_shard_bytes = std::int64_t{5} << 30;   ///< As transformers cuts by default.
};

/// Writes a folder's tensors: one model.safetensors, or shards "model-00001-of-0000N.safetensors" and their index past
/// `max_shard_bytes`. What an earlier write left of such files is replaced.
/// Fails with: what TensorFolderWriter fails with.
[[nodiscard]] Result<void> write_tensor_folder(const std::string& folder, const std::map<std::string, at::Tensor>& tensors, FolderOptions options = {});

/// The same a tensor at a time, so that only one need be in memory: all are declared first, then written in any order.
class TensorFolderWriter {
 public:
  using Declared = SafetensorsWriter::Declared;
  /// Makes the folder. Fails with: kIo; kInvalidArgument for a dtype or name that the format can't hold.
  [[nodiscard]] static Result<TensorFolderWriter> create(const std::string& folder, const std::map<std::string, Declared>& tensors, FolderOptions options = {});

  /// Fails with: kMismatch for a tensor that is not declared, declared otherwise or written before; kIo.
  [[nodiscard]] Result<void> write(const std::string& name, const at::Tensor& tensor);
  /// Flushes all files, then puts them in place, the index last. A crash meanwhile leaves a folder that open() takes as the old
  /// checkpoint or the new one or refuses, never a mix. Fails with: kMismatch when tensors are missing; kIo.
  [[nodiscard]] Result<void> finish();

 private:
  TensorFolderWriter() = default;
  std::string folder_;
  std::vector<SafetensorsWriter> shards_;
  std::map<std::string, std::size_t> shard_of_;
  std::int64_t total_bytes_ = 0;
};

}  // namespace troupe
