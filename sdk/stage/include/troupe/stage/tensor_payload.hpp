#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include <troupe/actors/payload.hpp>
#include <troupe/layout/segments.hpp>

namespace troupe {

/// Tensors are verb arguments and results: by reference in one process, never through CAF.
template <>
struct Payload<at::Tensor> {
  static std::int64_t bytes(const at::Tensor& value);
  /// Version counter, shape and 64 sampled bytes: finds in-place writes, also through raw pointers (POOL-5).
  static std::uint64_t fingerprint(const at::Tensor& value);
};

template <>
struct Payload<Segment> {
  static std::int64_t bytes(const Segment&) { return sizeof(Segment); }
  static std::uint64_t fingerprint(const Segment& segment) {
    return detail::mix(static_cast<std::uint64_t>(segment.id), static_cast<std::uint64_t>(segment.rows));
  }
};

}  // namespace troupe
