#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/base/result.hpp>
#include <troupe/base/text.hpp>
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

  /// The part into `out`, in out's dtype. A reader that can puts it there without a temporary when the dtypes agree.
  /// Fails with: what read() fails with, and then `out` may be partly written; kMismatch when out has another shape.
  [[nodiscard]] virtual Result<void> read_into(const std::string& name, const TensorPart& part, const at::Tensor& out) const {
    const auto read_part = read(name, part);
    if (!read_part) return fail(read_part.error());
    if (read_part->sizes() != out.sizes()) {
      return fail(Errc::kMismatch, text("the part of tensor '", name, "' is ", read_part->sizes(), ", its place is ", out.sizes()));
    }
    out.copy_(*read_part);
    return {};
  }
};

}  // namespace troupe
