#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <troupe/transport/channel.hpp>

namespace troupe::transport::test {

using Bytes = std::vector<std::byte>;
using Shape = std::vector<std::int64_t>;

inline constexpr DType kAllDTypes[] = {
    DType::kU8,  DType::kI8,   DType::kI16, DType::kI32, DType::kI64,    DType::kU16,    DType::kU32, DType::kU64, DType::kBool,
    DType::kF16, DType::kBf16, DType::kF32, DType::kF64, DType::kF8E4M3, DType::kF8E5M2, DType::kC64, DType::kC128};

/// Bounds every wait of a test: long enough for a sanitizer on a busy machine, short enough to fail.
inline Deadline soon(const Context& context) { return context.clock->after(std::chrono::seconds(30)); }
inline Deadline in_ms(const Context& context, int ms) { return context.clock->after(std::chrono::milliseconds(ms)); }

/// A contiguous tensor that owns its memory (through keep), zeroed.
Tensor make_tensor(DType dtype, Shape shape);

/// The same with a byte pattern that depends on `seed` and repeats at no power of two.
Tensor make_pattern(DType dtype, Shape shape, int seed = 1);

/// A view with strides in elements and an offset, over memory with room for it. Shares keep with the base.
Tensor view(const Tensor& base, Shape shape, Shape strides, std::int64_t offset = 0);

/// The elements in row-major order, read one by one by their strides: the oracle for every copy.
Bytes packed(const Tensor& tensor);

std::byte* bytes_of(const Tensor& tensor);

/// Runs fn(0..count-1) on `count` threads and joins them.
void on_threads(int count, const std::function<void(int)>& fn);

}  // namespace troupe::transport::test
