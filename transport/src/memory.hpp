#pragma once

#include <troupe/transport/memory.hpp>

namespace troupe::transport {

inline constexpr std::int64_t kAlignment = 64;  ///< Where every tensor of ours starts (TRN-3), bytes.

/// Refuses what no transport could move: bad dtype, more than 8 dims, a negative size, strides of another
/// length, bytes without memory.
/// Fails with: kInvalidArgument.
[[nodiscard]] Result<void> validate(const Tensor& tensor);

/// The same, and that the host can read it. Fails with: also kUnavailable for device memory.
[[nodiscard]] Result<void> validate_host(const Tensor& tensor);

/// Fresh host memory that starts on kAlignment and is not initialised.
/// Fails with: kOutOfMemory naming the bytes.
[[nodiscard]] Result<std::shared_ptr<std::byte>> allocate(std::int64_t bytes);

}  // namespace troupe::transport
