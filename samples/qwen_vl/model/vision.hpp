#pragma once

#include <cstdint>
#include <vector>

#include <troupe/parallel/linear.hpp>
#include <troupe/stage/graph.hpp>

#include "config.hpp"
#include "rope.hpp"

namespace qwen_vl {

/// The vision tower of Qwen2.5-VL: patches in window order in, one token per merge unit out, in window order. Rows
/// are sharded over sp between windows, so windowed blocks, patch embedding and merger need no other rank;
/// the full-attention blocks exchange rows for heads (Ulysses). Parameters are replicated.
/// Legend: n patches here, H heads, D head dim. Source: notes 3.2; Qwen2.5-VL, arXiv 2502.13923, section 2.1.
class Vision {
 public:
  Vision(troupe::Rank& rank, const VisionConfig& config);
  troupe::Packed forward(const troupe::Packed& patches, const troupe::Packed& coordinates);

  [[nodiscard]] std::vector<troupe::PortSpec> input_ports() const;
  [[nodiscard]] std::vector<troupe::PortSpec> output_ports() const;

 private:
  struct Block {
    bool is_full;
    troupe::RmsNorm norm1, norm2;
    troupe::Linear qkv, proj, gate, up, down;
  };
  [[nodiscard]] at::Tensor embed(const at::Tensor& patches) const;
  [[nodiscard]] at::Tensor attend(const Block& block, const at::Tensor& x, const Rotation& rotation, const troupe::Packed& patches,
                                  const std::vector<troupe::Segments>& frames) const;
  [[nodiscard]] at::Tensor merge(const at::Tensor& x) const;

  VisionConfig config_;
  c10::ScalarType dtype_;
  troupe::transport::Group& sp_;
  at::Tensor embed_;           ///< [hidden, channels, temporal patch, patch, patch]
  std::vector<Block> blocks_;
  troupe::RmsNorm merger_norm_;
  troupe::Linear merger_in_, merger_out_;
};

}  // namespace qwen_vl
