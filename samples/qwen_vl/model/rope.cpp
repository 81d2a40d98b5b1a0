#include "rope.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

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
  const at::Tensor each = angles.unsqueeze(-2);
  return {each.cos(), each.sin()};
}

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// (a, b) -> (a cos - b sin, b cos + a sin) for the halves of each head, written once; `sign` -1 turns back.
at::Tensor turned(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine, int sign) {
  at::Tensor out = at::empty(x.sizes(), x.options());
  const std::int64_t half = x.size(-1) / 2;
  const at::Tensor a = x.narrow(-1, 0, half), b = x.narrow(-1, half, half);
  at::Tensor first = out.narrow(-1, 0, half), second = out.narrow(-1, half, half);
  at::mul_out(first, a, cosine).addcmul_(b, sine, -sign);
  at::mul_out(second, b, cosine).addcmul_(a, sine, sign);
  return out;
}

/// One operator for autograd instead of six: its derivative is the turn back.
struct TurnHalves : torch::autograd::Function<TurnHalves> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine) {
    ctx->save_for_backward({cosine, sine});
    return turned(x, cosine, sine, 1);
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    return {turned(gradients[0], saved[0], saved[1], -1), {}, {}};
  }
};

}  // namespace

at::Tensor rotate(const at::Tensor& x, const Rotation& rotation, RotateIn precision) {
  const at::ScalarType dtype = x.scalar_type();
  const at::ScalarType inside = precision == RotateIn::kTablePrecision ? rotation.cosine.scalar_type() : dtype;
  return TurnHalves::apply(x.to(inside), rotation.cosine.to(inside), rotation.sine.to(inside)).to(dtype);
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
