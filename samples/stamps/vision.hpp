#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include <troupe/parallel/linear.hpp>
#include <troupe/stage/graph.hpp>

namespace stamps {

struct VisionConfig {
  std::int64_t width = 192;
  std::int64_t heads = 6;
  std::int64_t layers = 4;
  std::int64_t out = 192;     ///< Width of the language model.
  static auto troupe_fields(auto& self) { return std::tie(self.width, self.heads, self.layers, self.out); }
};

/// A small ViT: patches in, one token per 2 x 2 patches out. Rows are sharded over sp; only attention needs
/// the other members (Ulysses). Legend: n rows here, H heads, D head dim.
class Vision {
 public:
  Vision(troupe::Rank& rank, const VisionConfig& config);
  troupe::Packed forward(const troupe::Packed& patches);

  [[nodiscard]] std::vector<troupe::PortSpec> input_ports() const;
  [[nodiscard]] std::vector<troupe::PortSpec> output_ports() const;

 private:
  struct Block {
    troupe::LayerNorm before_attention, before_mlp;
    troupe::Linear qkv, out, up, down;
  };
  [[nodiscard]] at::Tensor run(const Block& block, const at::Tensor& x, const troupe::Packed& patches) const;

  VisionConfig config_;
  c10::ScalarType dtype_;
  troupe::transport::Group& sp_;
  troupe::Linear embed_;
  at::Tensor positions_;      ///< [patches of a picture, width]
  std::vector<Block> blocks_;
  troupe::LayerNorm norm_;
  troupe::Linear merge_;
};

}  // namespace stamps
