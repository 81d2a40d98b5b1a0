#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <troupe/parallel/tensor_reader.hpp>
#include <troupe/train/safetensors_header.hpp>

namespace troupe {

/// A file open for reading parts. Thread: any, at once.
class SafetensorsFile final : public TensorReader {
 public:
  /// Reads the header only. Fails with: kIo, what parse_safetensors_header() fails with.
  [[nodiscard]] static Result<std::shared_ptr<const SafetensorsFile>> open(const std::string& path);
  ~SafetensorsFile() override;
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  [[nodiscard]] const SafetensorsHeader& header() const noexcept;
  [[nodiscard]] const std::string& path() const noexcept;
  [[nodiscard]] bool has(const std::string& name) const;

  [[nodiscard]] Result<void> expect(const std::string& name, std::span<const std::int64_t> shape) const override;
  /// Only the part's bytes are read, straight into the tensor. Memory comes from LibTorch's allocator, so a rank's
  /// budget counts it: kOutOfMemory past that.
  [[nodiscard]] Result<at::Tensor> read(const std::string& name, const TensorPart& part) const override;
  /// Straight into `out` when it is contiguous, on the host and of the stored dtype; else through a temporary.
  [[nodiscard]] Result<void> read_into(const std::string& name, const TensorPart& part, const at::Tensor& out) const override;
  /// The whole tensor.
  [[nodiscard]] Result<at::Tensor> read(const std::string& name) const { return read(name, TensorPart{}); }

  /// Bytes that went into tensors since open().
  [[nodiscard]] std::int64_t bytes_read() const noexcept;
  /// Bytes asked of the file. More than bytes_read() only where a part is cut into pieces so small that reading a
  /// run of them, gaps included, costs less than a system call for each.
  [[nodiscard]] std::int64_t bytes_fetched() const noexcept;

 private:
  struct State;
  struct Found;
  [[nodiscard]] Result<Found> find(const std::string& name, const TensorPart& part) const;
  [[nodiscard]] Result<void> fill(const Found& found, const at::Tensor& out) const;
  explicit SafetensorsFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Every tensor of a file. Fails with: what opening and reading fail with.
[[nodiscard]] Result<std::map<std::string, at::Tensor>> read_safetensors(const std::string& path);

/// Writes a file whole or not at all (a temporary beside it, flushed to disk, then renamed). Tensors may have any
/// strides and live on any device. Data begin on 64 bytes, wider dtypes first, so that each tensor is aligned to its own.
/// Fails with: kIo; kInvalidArgument for a dtype or name that the format can't hold.
[[nodiscard]] Result<void> write_safetensors(const std::string& path, const std::map<std::string, at::Tensor>& tensors,
                                             const std::map<std::string, std::string>& metadata = {});

/// The same a tensor at a time, so that only one need be in memory: all are declared first, then written in any order.
class SafetensorsWriter {
 public:
  struct Declared {
    c10::ScalarType dtype;
    std::vector<std::int64_t> shape;
    [[nodiscard]] std::int64_t bytes() const;
  };
  /// Fails with: kIo, kInvalidArgument.
  [[nodiscard]] static Result<SafetensorsWriter> create(const std::string& path, const std::map<std::string, Declared>& tensors,
                                                        const std::map<std::string, std::string>& metadata = {});
  SafetensorsWriter(SafetensorsWriter&&) noexcept;
  /// Removes what was written unless finish() succeeded.
  ~SafetensorsWriter();

  /// Fails with: kMismatch for a tensor that is not declared, declared otherwise or written before; kIo.
  [[nodiscard]] Result<void> write(const std::string& name, const at::Tensor& tensor);
  /// Flushes to disk, still under the temporary name. Fails with: kMismatch when tensors are missing; kIo.
  [[nodiscard]] Result<void> seal();
  /// seal(), unless done, then renames into place.
  [[nodiscard]] Result<void> finish();

 private:
  struct State;
  explicit SafetensorsWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace troupe
