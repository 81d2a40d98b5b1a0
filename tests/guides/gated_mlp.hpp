#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include <ATen/ATen.h>

#include <troupe/parallel/collectives.hpp>
#include <troupe/parallel/linear.hpp>
#include <troupe/stage/graph.hpp>

// The code of docs/guides/port_a_layer.md: tests/guides compiles and runs it.

struct GatedMlpConfig {
  std::int64_t hidden = 0;
  std::int64_t intermediate = 0;
  bool forget = false;   ///< Leaves out what the guide shows leaving out.
  static auto troupe_fields(auto& self) { return std::tie(self.hidden, self.intermediate, self.forget); }
};

/// A pre-norm gated MLP with its residual: rows in, rows out. The inner width is sharded over tp.
class GatedMlp {
 public:
  GatedMlp(troupe::Rank& rank, const GatedMlpConfig& config)
      : forget_(config.forget),
        tp_(rank.axis("tp")),
        norm_(rank.parameters("norm"), config.hidden),
        gate_(rank.parameters("gate_proj"), config.hidden, config.intermediate, tp_, {.bias = false}),
        up_(rank.parameters("up_proj"), config.hidden, config.intermediate, tp_, {.bias = false}),
        down_(rank.parameters("down_proj"), config.intermediate, config.hidden, tp_, {.bias = false}) {}

  troupe::Packed forward(const troupe::Packed& x) {
    at::Tensor y = norm_.forward(x.rows);
    if (!forget_) y = troupe::copy_to_group(y, tp_);   // gate and up share it: its gradient is summed over tp once
    const at::Tensor out = x.rows + down_.forward(at::silu(gate_.forward_copied(y)) * up_.forward_copied(y));
    return {out, x.segments};
  }

 private:
  bool forget_;
  troupe::transport::Group& tp_;
  troupe::RmsNorm norm_;
  troupe::ColumnParallelLinear gate_, up_;
  troupe::RowParallelLinear down_;
};
