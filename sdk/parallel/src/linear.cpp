#include <troupe/parallel/linear.hpp>

#include <utility>

#include <ATen/ATen.h>

#include <troupe/parallel/collectives.hpp>

namespace troupe {

Linear::Linear(const Parameters& parameters, std::int64_t in, std::int64_t out, LinearOptions options)
    : weight_(parameters.add("weight", {out, in}, Initial::normal(options.deviation))) {
  if (options.bias) bias_ = parameters.add("bias", {out}, Initial::constant(0));
}

at::Tensor Linear::forward(const at::Tensor& x) const { return at::linear(x, weight_, bias_); }

ColumnParallelLinear::ColumnParallelLinear(const Parameters& parameters, std::int64_t in, std::int64_t out, transport::Group& tp, LinearOptions options)
    : tp_(&tp) {
  const ParameterShard shard{0, options.axis, options.unit, options.parts};
  weight_ = parameters.add("weight", {out, in}, Initial::normal(options.deviation), shard);
  if (options.bias) bias_ = parameters.add("bias", {out}, Initial::constant(0), shard);
}

at::Tensor ColumnParallelLinear::forward(const at::Tensor& x) const { return forward_copied(copy_to_group(x, *tp_)); }

at::Tensor ColumnParallelLinear::forward_copied(const at::Tensor& x) const { return at::linear(x, weight_, bias_); }

RowParallelLinear::RowParallelLinear(const Parameters& parameters, std::int64_t in, std::int64_t out, transport::Group& tp, LinearOptions options)
    : tp_(&tp) {
  weight_ = parameters.add("weight", {out, in}, Initial::normal(options.deviation), {1, options.axis, options.unit, options.parts});
  if (options.bias) bias_ = parameters.add("bias", {out}, Initial::constant(0));
}

at::Tensor RowParallelLinear::forward(const at::Tensor& x) const {
  if (tp_->size() == 1) return at::linear(x, weight_, bias_);
  const at::Tensor y = reduce_from_group(at::linear(x, weight_), *tp_);
  return bias_.defined() ? y + bias_ : y;
}

RmsNorm::RmsNorm(const Parameters& parameters, std::int64_t size, double epsilon)
    : weight_(parameters.add("weight", {size}, Initial::constant(1))), epsilon_(epsilon) {}

at::Tensor RmsNorm::forward(const at::Tensor& x) const {
  const at::ScalarType dtype = x.scalar_type();
  if (dtype == at::kDouble || dtype == at::kFloat) return at::rms_norm(x, weight_.sizes(), weight_, epsilon_);
  return at::rms_norm(x.to(at::kFloat), weight_.sizes(), {}, epsilon_).to(dtype) * weight_;
}

LayerNorm::LayerNorm(const Parameters& parameters, std::int64_t size, double epsilon)
    : weight_(parameters.add("weight", {size}, Initial::constant(1))), bias_(parameters.add("bias", {size}, Initial::constant(0))), epsilon_(epsilon) {}

at::Tensor LayerNorm::forward(const at::Tensor& x) const { return at::layer_norm(x, weight_.sizes(), weight_, bias_, epsilon_); }

}  // namespace troupe
