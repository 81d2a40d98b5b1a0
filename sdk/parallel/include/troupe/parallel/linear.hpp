#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/parallel/parameters.hpp>
#include <troupe/transport/group.hpp>

namespace troupe {

struct LinearOptions {
  bool bias = true;
  std::string axis = "tp";                  ///< Name of the axis that `tp` is, for the parameters.
  std::int64_t unit = 1;                    ///< The sharded dim is divided in multiples of this (head dim).
  std::vector<std::int64_t> parts = {};     ///< Sizes of fused blocks, each divided by itself.
  double deviation = 0.02;                  ///< Of the normal initial values.
};

/// y = x W^T + b on every rank alike. Shapes: [..., in] -> [..., out].
class Linear {
 public:
  Linear(const Parameters& parameters, std::int64_t in, std::int64_t out, LinearOptions options = {});
  [[nodiscard]] at::Tensor forward(const at::Tensor& x) const;

 private:
  at::Tensor weight_, bias_;
};

/// Output features sharded over tp. Shapes: [..., in] replicated -> [..., out / tp].
/// The gradient of x is summed over tp. Source: Shoeybi et al. 2019, arXiv 1909.08053, section 3.
class ColumnParallelLinear {
 public:
  ColumnParallelLinear(const Parameters& parameters, std::int64_t in, std::int64_t out, transport::Group& tp, LinearOptions options = {});
  [[nodiscard]] at::Tensor forward(const at::Tensor& x) const;
  /// The same for an input that went through copy_to_group() already: layers that share one (q, k, v; gate, up)
  /// then sum its gradient once.
  [[nodiscard]] at::Tensor forward_copied(const at::Tensor& x) const;

 private:
  at::Tensor weight_, bias_;
  transport::Group* tp_;
};

/// Input features sharded over tp; the partial products are summed, then the bias added once.
/// Shapes: [..., in / tp] -> [..., out] replicated.
class RowParallelLinear {
 public:
  RowParallelLinear(const Parameters& parameters, std::int64_t in, std::int64_t out, transport::Group& tp, LinearOptions options = {});
  [[nodiscard]] at::Tensor forward(const at::Tensor& x) const;

 private:
  at::Tensor weight_, bias_;
  transport::Group* tp_;
};

/// Root-mean-square norm over the last dim, with a replicated weight. Precisions below fp32 are normalised in fp32,
/// then rounded, then scaled. Source: Zhang and Sennrich 2019, arXiv 1910.07467.
class RmsNorm {
 public:
  RmsNorm(const Parameters& parameters, std::int64_t size, double epsilon = 1e-6);
  [[nodiscard]] at::Tensor forward(const at::Tensor& x) const;

 private:
  at::Tensor weight_;
  double epsilon_;
};

/// Layer norm over the last dim, with replicated weight and bias.
class LayerNorm {
 public:
  LayerNorm(const Parameters& parameters, std::int64_t size, double epsilon = 1e-5);
  [[nodiscard]] at::Tensor forward(const at::Tensor& x) const;

 private:
  at::Tensor weight_, bias_;
  double epsilon_;
};

}  // namespace troupe
