#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <ATen/ATen.h>

namespace qwen_vl {

using Tensors = std::map<std::string, at::Tensor>;

/// The largest error by NUM-1's measure, max|a-b| / max(max|b|, 1e-6 x the largest entry of any gradient), and where.
inline std::pair<double, std::string> worst(const Tensors& got, const Tensors& expected) {
  double largest = 0;
  for (const auto& [name, tensor] : expected) {
    if (name.starts_with("grad.") && tensor.numel() > 0) largest = std::max(largest, tensor.abs().max().item<double>());
  }
  std::pair<double, std::string> out{0, ""};
  for (const auto& [name, tensor] : expected) {
    const auto found = got.find(name);
    if (found == got.end()) return {1e9, name + " is missing"};
    if (found->second.sizes() != tensor.sizes()) return {1e9, name + " has another shape"};
    if (tensor.numel() == 0) continue;
    const at::Tensor a = found->second.to(at::kDouble), b = tensor.to(at::kDouble);
    const double scale = std::max(b.abs().max().item<double>(), 1e-6 * largest);
    const double error = (a - b).abs().max().item<double>() / (scale > 0 ? scale : 1);
    if (!(error <= out.first)) out = {error, name};
  }
  return out;
}

}  // namespace qwen_vl
