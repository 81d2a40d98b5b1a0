#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/base/result.hpp>
#include <troupe/layout/mesh.hpp>

namespace troupe {

/// Which part of a stored tensor is wanted: `ranges` of `dim`, in order, as one tensor; dim -1: the whole.
struct TensorPart {
  int dim = -1;
  std::span<const Share> ranges = {};
};

/// Stored tensors by name, read a part at a time: where ranks take their own slices of a checkpoint from.
/// Called from many rank threads at once.
class TensorReader {
 public:
  virtual ~TensorReader() = default;

  /// Fails with: kMismatch when there is no such tensor or `shape` is not its shape (naming expected and got);
  /// nothing is read.
  [[nodiscard]] virtual Result<void> expect(const std::string& name, std::span<const std::int64_t> shape) const = 0;

  /// The part in fresh, contiguous memory, in the stored dtype. Fails with: what expect() fails with, kIo,
  /// kBadData, kInvalidArgument for a part outside the tensor.
  [[nodiscard]] virtual Result<at::Tensor> read(const std::string& name, const TensorPart& part) const = 0;
};

}  // namespace troupe
