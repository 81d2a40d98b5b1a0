#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <troupe/parallel/linear.hpp>
#include <troupe/parallel/vocab.hpp>
#include <troupe/stage/graph.hpp>

#include "batch.hpp"
#include "config.hpp"
#include "language_attention.hpp"

namespace qwen_vl {

/// The language model of Qwen2.5-VL: token embeddings with picture tokens put in their places, causal decoder layers
/// with M-RoPE, a head over the vocabulary. Heads, inner widths and the vocabulary are sharded over tp, unevenly
/// where they must. Legend: B samples, S tokens. Source: notes 3.1, 3.2; Qwen2.5-VL, arXiv 2502.13923.
class Language {
 public:
  Language(troupe::Rank& rank, const LanguageConfig& config);

  /// Cross-entropy over the labels that count; logits are made there only.
  troupe::Loss forward(const Text& text, const troupe::Packed& images);

  /// [B, S, vocabulary] in the model's precision, on every rank: for looking (Stage::call).
  at::Tensor logits(const Text& text, const troupe::Packed& images);

  /// Starts a generation: forgets the last one, takes the prompt; scores of what follows it, [B, vocabulary].
  at::Tensor begin(const Text& text, const troupe::Packed& images);
  /// Goes on by one token a sample: ids [B, 1], positions [B, 3, 1]; scores of what follows, [B, vocabulary].
  at::Tensor next(const at::Tensor& ids, const at::Tensor& positions);

  [[nodiscard]] std::vector<troupe::PortSpec> input_ports() const;

 private:
  struct Layer {
    troupe::RmsNorm input_norm, post_norm;
    LanguageAttention attention;
    troupe::ColumnParallelLinear gate, up;
    troupe::RowParallelLinear down;
  };
  [[nodiscard]] at::Tensor embed(const Text& text, const troupe::Packed& images) const;
  [[nodiscard]] at::Tensor decode(at::Tensor x, const at::Tensor& positions, const Visibility& visible, std::vector<KeyValueCache>* caches) const;
  [[nodiscard]] at::Tensor head(const at::Tensor& x) const;
  [[nodiscard]] at::Tensor whole_vocabulary(const at::Tensor& scores) const;

  LanguageConfig config_;
  c10::ScalarType dtype_;
  troupe::transport::Group& tp_;
  troupe::VocabParallelEmbedding embedding_;
  std::vector<Layer> layers_;
  troupe::RmsNorm norm_;
  std::optional<troupe::ColumnParallelLinear> head_;   ///< Untied models have one.
  std::vector<KeyValueCache> caches_;                  ///< Of the generation under way.
};

}  // namespace qwen_vl
