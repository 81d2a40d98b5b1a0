#pragma once

#include <cstdint>

#include "picture.hpp"

namespace qwen_vl {

struct Size {
  std::int64_t height = 0;
  std::int64_t width = 0;
  friend bool operator==(const Size&, const Size&) = default;
};

struct SmartResizeOptions {
  std::int64_t factor = 28;                   ///< Sides become multiples of it: patch x merge.
  std::int64_t min_pixels = 56 * 56;
  std::int64_t max_pixels = 28 * 28 * 1280;
};

/// The size nearest to `size` with sides that are multiples of `factor` and pixels in bounds, aspect kept as far as possible.
/// Fails with: kBadData for an aspect ratio above 200, naming it. Source: smart_resize of transformers' qwen2_vl.
[[nodiscard]] troupe::Result<Size> smart_resize(Size size, const SmartResizeOptions& options);

/// Bicubic (a = -0.5) with the support widened when shrinking, in 8-bit fixed point: the same bytes as Pillow 13's. Columns go
/// first unless more than twice as many rows fall away (Pillow before 13: always).
/// Source: Keys 1981, "Cubic convolution interpolation"; the fixed-point scheme of Pillow's Resample.c (22 bits, rounded).
[[nodiscard]] Picture resize_bicubic(const Picture& picture, Size to);

}  // namespace qwen_vl
