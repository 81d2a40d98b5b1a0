#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <troupe/transport/memory.hpp>

namespace troupe {

/// What a tensor is, for the transport. Fails with: kInvalidArgument for a dtype that has no wire form.
[[nodiscard]] Result<transport::TensorDesc> describe(const at::Tensor& tensor);

/// Lends a tensor's bytes to the transport, which holds on to them until the operation has ended.
/// Throws Exception (kInvalidArgument) for a dtype without wire form or an undefined tensor.
[[nodiscard]] transport::Tensor lend(const at::Tensor& tensor);

/// A tensor over memory of the transport, which lives as long as it. No copy.
[[nodiscard]] at::Tensor adopt(const transport::Tensor& tensor);

[[nodiscard]] Result<transport::DType> to_transport(c10::ScalarType dtype);
[[nodiscard]] c10::ScalarType to_torch(transport::DType dtype);

/// Whether the data starts on 64 bytes: elsewhere kernels may round differently (TRN-3).
[[nodiscard]] bool is_aligned(const at::Tensor& tensor);

}  // namespace troupe
