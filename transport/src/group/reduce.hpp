#pragma once

#include <cstdint>
#include <span>

#include <troupe/transport/group.hpp>

namespace troupe::transport {

/// Whether elements of this dtype can be added. T3: all others can be moved, not reduced.
[[nodiscard]] bool reducible(DType dtype) noexcept;

/// out[i] = parts[0][i] op parts[1][i] op ..., in that order (NUM-1). kBf16 and kF16 add in fp32 and round
/// once, to nearest even. `out` may be one of the parts. The dtype must be reducible.
void reduce_in_order(DType dtype, Reduce reduce, std::span<const void* const> parts, void* out, std::int64_t elements);

}  // namespace troupe::transport
