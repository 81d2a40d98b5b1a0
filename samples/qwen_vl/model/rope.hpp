#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace qwen_vl {

/// Cosines and sines of angles, ready to turn heads of dim D. In fp32, or fp64 where the model is.
struct Rotation {
  at::Tensor cosine;   ///< [..., 1, D/2]: both halves of a head turn alike.
  at::Tensor sine;     ///< [..., 1, D/2]
};

/// Turns pairs (i, i + D/2) of each head. Shapes: x [..., H, D] -> the same. In the tables' precision, then
/// rounded (the vision tower), or in x's own (the language model): as transformers does in bf16.
/// Source: Su et al. 2021, arXiv 2104.09864.
enum class RotateIn : std::uint8_t { kTablePrecision, kOwnPrecision };
[[nodiscard]] at::Tensor rotate(const at::Tensor& x, const Rotation& rotation, RotateIn precision);

/// The tower's: half the frequencies turn with the row, half with the column. coordinates [n, 2] i64.
[[nodiscard]] Rotation vision_rotation(const at::Tensor& coordinates, std::int64_t head_dim, double theta, at::ScalarType dtype);

/// M-RoPE: frequencies 0 .. sections[0] turn with time, the next sections[1] with the row, the rest with the column.
/// positions [B, 3, S] i64 -> [B, S, 1, D/2]. Source: Qwen2-VL, arXiv 2409.12191, section 2.1.
[[nodiscard]] Rotation language_rotation(const at::Tensor& positions, const std::vector<std::int64_t>& sections, double theta, at::ScalarType dtype);

}  // namespace qwen_vl
