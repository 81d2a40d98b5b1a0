#include "reduce.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <type_traits>

#include "half.hpp"

namespace troupe::transport {
namespace {

// Small enough for the accumulators to stay in the first-level cache, and a constant, so that the
// compiler turns the loops over a full block into vector code.
constexpr std::int64_t kBlock = 512;

/// How an element is held while it is summed. Signed integers wrap as unsigned ones do.
template <class T>
struct Arithmetic {
  using Sum = T;
  static Sum load(T value) { return value; }
  static void store(Sum sum, T& out) { out = sum; }
};
template <>
struct Arithmetic<Bf16> {
  using Sum = float;
  static Sum load(Bf16 value) { return widen(value); }
  static void store(Sum sum, Bf16& out) { narrow(sum, out); }
};
template <>
struct Arithmetic<F16> {
  using Sum = float;
  static Sum load(F16 value) { return widen(value); }
  static void store(Sum sum, F16& out) { narrow(sum, out); }
};

template <class Sum>
struct Add {
  static Sum apply(Sum a, Sum b) {
    if constexpr (std::is_integral_v<Sum>) {
      using Unsigned = std::make_unsigned_t<Sum>;
      return static_cast<Sum>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
    } else {
      return a + b;
    }
  }
};

template <class Sum>
struct Max {
  static Sum apply(Sum a, Sum b) {
    if constexpr (std::is_floating_point_v<Sum>) {
      if (std::isnan(a)) return a;
      return std::isnan(b) || b > a ? b : a;
    } else {
      return std::max(a, b);
    }
  }
};

template <class T, template <class> class Op>
void reduce_block(std::span<const void* const> parts, T* out, std::int64_t start, std::int64_t count) {
  using A = Arithmetic<T>;
  using Sum = typename A::Sum;
  Sum sums[kBlock];
  const T* first = static_cast<const T*>(parts[0]) + start;
  for (std::int64_t i = 0; i < count; ++i) sums[i] = A::load(first[i]);
  for (const void* part : parts.subspan(1)) {
    const T* next = static_cast<const T*>(part) + start;
    for (std::int64_t i = 0; i < count; ++i) sums[i] = Op<Sum>::apply(sums[i], A::load(next[i]));
  }
  for (std::int64_t i = 0; i < count; ++i) A::store(sums[i], out[start + i]);
}

template <class T, template <class> class Op>
void reduce_all(std::span<const void* const> parts, void* out, std::int64_t elements) {
  std::int64_t start = 0;
  for (; start + kBlock <= elements; start += kBlock) reduce_block<T, Op>(parts, static_cast<T*>(out), start, kBlock);
  reduce_block<T, Op>(parts, static_cast<T*>(out), start, elements - start);
}

template <template <class> class Op>
void reduce_by_dtype(DType dtype, std::span<const void* const> parts, void* out, std::int64_t elements) {
  switch (dtype) {
    case DType::kF64: return reduce_all<double, Op>(parts, out, elements);
    case DType::kF32: return reduce_all<float, Op>(parts, out, elements);
    case DType::kBf16: return reduce_all<Bf16, Op>(parts, out, elements);
    case DType::kF16: return reduce_all<F16, Op>(parts, out, elements);
    case DType::kI64: return reduce_all<std::int64_t, Op>(parts, out, elements);
    case DType::kI32: return reduce_all<std::int32_t, Op>(parts, out, elements);
    default: assert(false && "reducible() was not asked");
  }
}

}  // namespace

bool reducible(DType dtype) noexcept {
  switch (dtype) {
    case DType::kF64:
    case DType::kF32:
    case DType::kBf16:
    case DType::kF16:
    case DType::kI64:
    case DType::kI32: return true;
    default: return false;
  }
}

void reduce_in_order(DType dtype, Reduce reduce, std::span<const void* const> parts, void* out, std::int64_t elements) {
  if (elements == 0) return;
  if (reduce == Reduce::kSum) {
    reduce_by_dtype<Add>(dtype, parts, out, elements);
  } else {
    reduce_by_dtype<Max>(dtype, parts, out, elements);
  }
}

}  // namespace troupe::transport
