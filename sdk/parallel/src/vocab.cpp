#include <troupe/parallel/vocab.hpp>

#include <limits>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <troupe/parallel/collectives.hpp>
#include <troupe/torch/tensor.hpp>

namespace troupe {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

/// Which ids this rank's share holds, and their rows; others point at row 0 and are masked.
struct Located {
  at::Tensor inside;  ///< bool
  at::Tensor row;     ///< i64
};
Located locate(const at::Tensor& ids, const Share& share) {
  const at::Tensor row = ids - share.begin;
  at::Tensor inside = row.ge(0).logical_and(row.lt(share.size));
  return {inside, row * inside};
}

struct CrossEntropy : Function<CrossEntropy> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& logits, const at::Tensor& targets, const Share* share, transport::Group* tp,
                            std::int64_t ignore) {
    const bool low = logits.scalar_type() != at::kDouble && logits.scalar_type() != at::kFloat;
    const at::Tensor x = low ? logits.to(at::kFloat) : logits;
    const std::int64_t tokens = x.size(0);
    at::Tensor highest = share->size > 0 ? x.amax(1) : at::full({tokens}, -std::numeric_limits<double>::infinity(), x.options());
    or_throw(tp->all_reduce(lend(highest), transport::Reduce::kMax));
    // one buffer of the logits' size in all: scores below the highest, then their powers, then probabilities
    at::Tensor scores = x - highest.unsqueeze(1);
    const Located at = locate(targets, *share);
    // the sum of powers and the target's score travel together: two all-reduces in all
    at::Tensor both = at::zeros({2, tokens}, x.options());
    if (share->size > 0) both[1].copy_(scores.gather(1, at.row.unsqueeze(1)).squeeze(1) * at.inside);
    scores.exp_();
    both[0].copy_(scores.sum(1));
    or_throw(tp->all_reduce(lend(both)));
    const at::Tensor counted = targets.ne(ignore);
    ctx->save_for_backward({scores.div_(both[0].unsqueeze(1)), at.row, at.inside, counted});
    ctx->saved_data["dtype"] = static_cast<std::int64_t>(logits.scalar_type());
    return (both[0].log() - both[1]) * counted;
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    at::Tensor gradient = saved[0].clone();
    if (gradient.size(1) > 0) gradient.scatter_add_(1, saved[1].unsqueeze(1), saved[2].to(gradient.scalar_type()).neg().unsqueeze(1));
    gradient.mul_((gradients[0] * saved[3]).unsqueeze(1));
    return {gradient.to(static_cast<at::ScalarType>(ctx->saved_data["dtype"].toInt())), {}, {}, {}, {}};
  }
};

}  // namespace

VocabParallelEmbedding::VocabParallelEmbedding(const Parameters& parameters, std::int64_t vocabulary, std::int64_t size, transport::Group& tp,
                                               const std::string& axis, double deviation)
    : weight_(parameters.add("weight", {vocabulary, size}, Initial::normal(deviation), {0, axis})),
      share_(share_of(vocabulary, tp.size(), tp.rank())),
      tp_(&tp) {}

at::Tensor VocabParallelEmbedding::forward(const at::Tensor& ids) const {
  if (tp_->size() == 1) return at::embedding(weight_, ids);
  std::vector<std::int64_t> shape = ids.sizes().vec();
  shape.push_back(weight_.size(1));
  // a rank without rows still joins the sum, and its graph still reaches its (empty) weight
  if (share_.size == 0) return reduce_from_group(at::zeros(shape, weight_.options()) + weight_.sum(), *tp_);
  const Located at = locate(ids, share_);
  return reduce_from_group(at::embedding(weight_, at.row) * at.inside.unsqueeze(-1), *tp_);
}

at::Tensor VocabParallelEmbedding::logits(const at::Tensor& x) const { return at::linear(copy_to_group(x, *tp_), weight_); }

at::Tensor vocab_parallel_cross_entropy(const at::Tensor& local_logits, const at::Tensor& targets, Share share, transport::Group& tp, std::int64_t ignore) {
  return CrossEntropy::apply(local_logits, targets, &share, &tp, ignore);
}

}  // namespace troupe
