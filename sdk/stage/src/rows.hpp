#pragma once

#include <span>

#include <ATen/core/Tensor.h>

#include <troupe/layout/segments.hpp>
#include <troupe/stage/edge.hpp>

namespace troupe::detail {

/// The rows that `slices` name, in order: a view where one stretch serves and lies on 64 bytes (TRN-3), else
/// a copy, counted. `sources[slice.source_rank]`.
[[nodiscard]] at::Tensor take_rows(std::span<const at::Tensor> sources, std::span<const Slice> slices, EdgeTraffic& traffic,
                                   transport::TransferCounters* counters);

}  // namespace troupe::detail
