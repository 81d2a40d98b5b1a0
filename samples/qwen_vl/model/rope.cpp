#include "rope.hpp"

#include <ATen/ATen.h>

namespace qwen_vl {
namespace {

/// fp64 models have fp64 tables; all others fp32 ones.
at::ScalarType table_dtype(at::ScalarType dtype) { return dtype == at::kDouble ? at::kDouble : at::kFloat; }

/// theta^(-2i / dim) for i < dim / 2.
at::Tensor frequencies(std::int64_t dim, double theta, at::ScalarType dtype, const at::Device& device) {
  const at::TensorOptions options = at::TensorOptions(table_dtype(dtype)).device(device);
  return at::reciprocal(at::pow(theta, at::arange(0, dim, 2, options) / static_cast<double>(dim)));
}

/// Angles [..., D/2] for all heads.
Rotation rotation_of(const at::Tensor& angles) {
  const at::Tensor both = at::cat({angles, angles}, -1).unsqueeze(-2);
  return {both.cos(), both.sin()};
}

}  // namespace

at::Tensor rotate(const at::Tensor& x, const Rotation& rotation, RotateIn precision) {
  const at::ScalarType dtype = x.scalar_type();
  const at::ScalarType inside = precision == RotateIn::kTablePrecision ? rotation.cosine.scalar_type() : dtype;
  const at::Tensor wide = x.to(inside);
  const auto halves = wide.chunk(2, -1);
  const at::Tensor turned = at::cat({halves[1].neg(), halves[0]}, -1);
  return (wide * rotation.cosine.to(inside) + turned * rotation.sine.to(inside)).to(dtype);
}

Rotation vision_rotation(const at::Tensor& coordinates, std::int64_t head_dim, double theta, at::ScalarType dtype) {
  const at::Tensor each = frequencies(head_dim / 2, theta, dtype, coordinates.device());
  const at::Tensor angles = coordinates.to(each.scalar_type()).unsqueeze(-1) * each;   // [n, 2, D/4]
  return rotation_of(angles.flatten(1));
}

Rotation language_rotation(const at::Tensor& positions, const std::vector<std::int64_t>& sections, double theta, at::ScalarType dtype) {
  std::int64_t half = 0;
  for (const std::int64_t section : sections) half += section;
  const at::Tensor each = frequencies(2 * half, theta, dtype, positions.device());
  std::vector<at::Tensor> angles;
  std::int64_t begin = 0;
  for (std::size_t axis = 0; axis < sections.size(); ++axis) {
    const at::Tensor on_axis = positions.select(1, static_cast<std::int64_t>(axis)).to(each.scalar_type()).unsqueeze(-1);   // [B, S, 1]
    angles.push_back(on_axis * each.narrow(0, begin, sections[axis]));
    begin += sections[axis];
  }
  return rotation_of(at::cat(angles, -1));
}

}  // namespace qwen_vl
