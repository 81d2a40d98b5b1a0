#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include <troupe/parallel/linear.hpp>
#include <troupe/parallel/vocab.hpp>
#include <troupe/stage/graph.hpp>

#include "source.hpp"

namespace stamps {

struct LanguageConfig {
  std::int64_t vocabulary = 0;
  std::int64_t width = 192;
  std::int64_t heads = 6;
  std::int64_t layers = 4;
  static auto troupe_fields(auto& self) { return std::tie(self.vocabulary, self.width, self.heads, self.layers); }
};

/// A small decoder: the picture's tokens first, then the caption; causal. Heads, inner widths and the vocabulary
/// are sharded over tp. Legend: B samples, S positions, h heads here, D head dim.
class Language {
 public:
  Language(troupe::Rank& rank, const LanguageConfig& config);
  troupe::Loss forward(const Text& text, const troupe::Packed& pictures);

  /// The likeliest next token after each sample's ids: greedy decoding, one token a call.
  std::vector<std::int64_t> next_tokens(const at::Tensor& ids, const troupe::Packed& pictures);

  [[nodiscard]] std::vector<troupe::PortSpec> input_ports() const;

 private:
  struct Block {
    troupe::LayerNorm before_attention, before_mlp;
    troupe::ColumnParallelLinear qkv;
    troupe::RowParallelLinear out;
    troupe::ColumnParallelLinear up;
    troupe::RowParallelLinear down;
  };
  [[nodiscard]] at::Tensor hidden(const at::Tensor& ids, const troupe::Packed& pictures) const;
  [[nodiscard]] at::Tensor run(const Block& block, const at::Tensor& x) const;

  LanguageConfig config_;
  c10::ScalarType dtype_;
  troupe::transport::Group& tp_;
  std::int64_t heads_here_;
  troupe::VocabParallelEmbedding tokens_;
  at::Tensor positions_;      ///< [picture tokens + longest caption, width]
  std::vector<Block> blocks_;
  troupe::LayerNorm norm_;
};

}  // namespace stamps
