#pragma once

#include <cstdint>
#include <optional>

#include <ATen/core/Tensor.h>

#include <troupe/parallel/linear.hpp>

#include "config.hpp"
#include "rope.hpp"

namespace qwen_vl {

/// Keys and values of the tokens seen so far, of one layer. [B, tokens, kv heads here, D]
struct KeyValueCache {
  at::Tensor keys, values;
};

/// Where a query may look.
struct Visibility {
  at::Tensor mask;   ///< [B, 1, S, S] bool; undefined: causal alone.
};

/// Causal attention with grouped heads (GQA), heads sharded over tp. Where tp divides the kv heads, each rank has its
/// own; else k and v are replicated and each rank computes those its heads look at. Heads may be uneven; with more ranks
/// than heads the last have none. Legend: B samples, S tokens, h heads here, D head dim.
class LanguageAttention {
 public:
  LanguageAttention(const troupe::Parameters& parameters, const LanguageConfig& config, troupe::transport::Group& tp);

  /// [B, S, hidden] replicated -> the same. With a cache the tokens follow those in it, which grow by them.
  [[nodiscard]] at::Tensor forward(const at::Tensor& x, const Rotation& rotation, const Visibility& visible, KeyValueCache* cache) const;

 private:
  /// A replicated weight, of which a rank uses the rows of some heads.
  struct Replicated {
    at::Tensor weight, bias;
  };
  [[nodiscard]] at::Tensor project(const std::optional<troupe::ColumnParallelLinear>& sharded, const Replicated& replicated, const at::Tensor& x) const;
  [[nodiscard]] at::Tensor for_each_head(const at::Tensor& kv) const;

  std::int64_t head_dim_;
  std::int64_t group_;         ///< Query heads of a kv head.
  troupe::Share heads_;        ///< Here.
  troupe::Share kv_heads_;     ///< That these look at.
  troupe::transport::Group* tp_;
  troupe::ColumnParallelLinear q_;
  std::optional<troupe::ColumnParallelLinear> k_, v_;
  Replicated all_k_, all_v_;
  troupe::RowParallelLinear o_;
};

}  // namespace qwen_vl
