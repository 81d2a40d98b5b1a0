#pragma once

#include <ATen/core/Tensor.h>

#include <troupe/parallel/parameters.hpp>
#include <troupe/transport/group.hpp>

namespace troupe {

/// Sums every parameter's gradient over `group` (data axes), in buckets of flat memory, in parameter order.
/// A gradient that does not exist counts as zero, so that every member takes the same path (EDG-3).
/// Fails with what the group fails with.
[[nodiscard]] Result<void> sum_gradients(const ParameterStore& store, transport::Group& group);

/// Sum of squares of the gradients that count on this rank, 0-dim fp64: each parameter element once over all
/// ranks of the mesh (NUM-3): a rank counts what no rank with lower coordinates holds too.
[[nodiscard]] at::Tensor local_norm_square(const ParameterStore& store);

}  // namespace troupe
