#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

#include <troupe/parallel/parameters.hpp>
#include <troupe/transport/group.hpp>

namespace troupe {

/// Embedding whose rows (the vocabulary) are sharded over tp. Shapes: ids [...] i64 -> [..., size] replicated.
class VocabParallelEmbedding {
 public:
  VocabParallelEmbedding(const Parameters& parameters, std::int64_t vocabulary, std::int64_t size, transport::Group& tp,
                         const std::string& axis = "tp", double deviation = 0.02);
  [[nodiscard]] at::Tensor forward(const at::Tensor& ids) const;
  /// Scores of every token of this rank's share against `x` (a tied head). [..., size] -> [..., V / tp].
  [[nodiscard]] at::Tensor logits(const at::Tensor& x) const;
  [[nodiscard]] Share share() const noexcept { return share_; }

 private:
  at::Tensor weight_;
  Share share_;
  transport::Group* tp_;
};

/// Cross-entropy over a vocabulary sharded over tp, without gathering logits: two small all-reduces forward,
/// none backward. Computed in fp32 for lower precisions.
/// Shapes: local_logits [N, V / tp], targets [N] i64 global ids -> losses [N], 0 where the target is `ignore`.
/// Source: the closed form log(sum exp) - target; Shoeybi et al. 2019, arXiv 1909.08053, section 3.
[[nodiscard]] at::Tensor vocab_parallel_cross_entropy(const at::Tensor& local_logits, const at::Tensor& targets, Share share,
                                                      transport::Group& tp, std::int64_t ignore = -100);

}  // namespace troupe
