#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/parallel/tensor_reader.hpp>

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
/// messages. Pure; knows no LibTorch. Fails with: kBadData naming file, tensor, expected and got: cut short,
/// header too long, not JSON, unknown dtype, a name twice, offsets that overlap, leave holes, go past the end or do not fit dtype x shape.
/// Source of the format: huggingface/safetensors, README, "Format".
[[nodiscard]] Result<SafetensorsHeader> parse_safetensors_header(std::string_view bytes, std::int64_t file_size, const std::string& name);

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
  /// Only the part's bytes are read, straight into the tensor.
  [[nodiscard]] Result<at::Tensor> read(const std::string& name, const TensorPart& part) const override;
  /// The whole tensor.
  [[nodiscard]] Result<at::Tensor> read(const std::string& name) const { return read(name, TensorPart{}); }

  /// Of tensor data, since open().
  [[nodiscard]] std::int64_t bytes_read() const noexcept;

 private:
  struct State;
  explicit SafetensorsFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Every tensor of a file. Fails with: what opening and reading fail with.
[[nodiscard]] Result<std::map<std::string, at::Tensor>> read_safetensors(const std::string& path);

/// Writes a file whole or not at all (a temporary beside it, flushed to disk, then renamed). Tensors may have any
/// strides; names are sorted; data begins on 64 bytes.
/// Fails with: kIo; kInvalidArgument for a dtype the format has no name for.
[[nodiscard]] Result<void> write_safetensors(const std::string& path, const std::map<std::string, at::Tensor>& tensors,
                                             const std::map<std::string, std::string>& metadata = {});

/// The same a tensor at a time, so that only one need be in memory: declared first, then written in order of names.
class SafetensorsWriter {
 public:
  struct Declared {
    c10::ScalarType dtype;
    std::vector<std::int64_t> shape;
  };
  /// Fails with: kIo, kInvalidArgument.
  [[nodiscard]] static Result<SafetensorsWriter> create(const std::string& path, const std::map<std::string, Declared>& tensors,
                                                        const std::map<std::string, std::string>& metadata = {});
  SafetensorsWriter(SafetensorsWriter&&) noexcept;
  /// Removes what was written unless finish() was called.
  ~SafetensorsWriter();

  /// The next tensor, in the order of names. Fails with: kMismatch for another name, dtype or shape; kIo.
  [[nodiscard]] Result<void> write(const std::string& name, const at::Tensor& tensor);
  /// Flushes and renames into place. Fails with: kMismatch when tensors are missing; kIo.
  [[nodiscard]] Result<void> finish();

 private:
  struct State;
  explicit SafetensorsWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace troupe
