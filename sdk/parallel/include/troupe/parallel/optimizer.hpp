#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/parallel/parameters.hpp>

namespace troupe {

/// Whether `name` matches `pattern`, where '*' stands for any run of characters.
[[nodiscard]] bool matches_pattern(std::string_view pattern, std::string_view name) noexcept;

/// Parameters that learn alike, by their index in the store.
struct AdamGroup {
  std::vector<std::size_t> members;
  double learning_rate = 1e-3;
  double weight_decay = 0.01;
};

struct AdamOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
};

/// AdamW with decoupled decay on LibTorch's fused operator, state in the parameters' dtype.
/// Source: Loshchilov and Hutter 2019, arXiv 1711.05101. Thread: the rank's own.
class AdamW {
 public:
  AdamW(const ParameterStore& store, std::vector<AdamGroup> groups, AdamOptions options);

  /// Multiplies the gradients by `scale` (0-dim) and updates every parameter that has one; a gradient that
  /// does not exist is zero. `factor` times each group's learning rate counts.
  void step(double factor, const at::Tensor& scale);

  /// What is kept of one parameter: moments of its shape and the number of updates (0-dim fp32). Writing to them sets them.
  struct Slot {
    at::Tensor first, second, steps;
  };
  /// By index in the store.
  [[nodiscard]] const std::vector<Slot>& slots() const noexcept { return slots_; }

 private:
  const ParameterStore* store_;
  std::vector<AdamGroup> groups_;
  AdamOptions options_;
  std::vector<Slot> slots_;
};

}  // namespace troupe
