#include "language_attention.hpp"

#include <vector>

#include <ATen/ATen.h>

#include <troupe/base/text.hpp>
#include <troupe/parallel/collectives.hpp>

namespace qwen_vl {
namespace {

troupe::LinearOptions heads(const LanguageConfig& config, bool bias) {
  return {.bias = bias, .unit = config.head_dim, .deviation = config.initial_deviation};
}

}  // namespace

LanguageAttention::LanguageAttention(const troupe::Parameters& parameters, const LanguageConfig& config, troupe::transport::Group& tp)
    : head_dim_(config.head_dim),
      group_(config.heads / config.kv_heads),
      heads_(troupe::share_of(config.heads, tp.size(), tp.rank())),
      tp_(&tp),
      q_(parameters.scope("q_proj"), config.hidden, config.heads * config.head_dim, tp, heads(config, true)),
      o_(parameters.scope("o_proj"), config.heads * config.head_dim, config.hidden, tp, heads(config, false)) {
  const std::int64_t kv = config.kv_heads;
  if (kv % tp.size() == 0) {
    kv_heads_ = troupe::share_of(kv, tp.size(), tp.rank());
    k_.emplace(parameters.scope("k_proj"), config.hidden, kv * head_dim_, tp, heads(config, true));
    v_.emplace(parameters.scope("v_proj"), config.hidden, kv * head_dim_, tp, heads(config, true));
    return;
  }
  if (heads_.size > 0) {
    const std::int64_t first = heads_.begin / group_;
    kv_heads_ = {first, (heads_.begin + heads_.size - 1) / group_ + 1 - first};
  }
  for (auto [name, to] : {std::pair{"k_proj", &all_k_}, std::pair{"v_proj", &all_v_}}) {
    to->weight = parameters.scope(name).add("weight", {kv * head_dim_, config.hidden}, troupe::Initial::normal(config.initial_deviation));
    to->bias = parameters.scope(name).add("bias", {kv * head_dim_}, troupe::Initial::constant(0));
  }
}

at::Tensor LanguageAttention::project(const std::optional<troupe::ColumnParallelLinear>& sharded, const Replicated& replicated, const at::Tensor& x) const {
  at::Tensor y;
  if (sharded) {
    y = sharded->forward_copied(x);
  } else {
    // each rank's gradient is a part: of its heads only
    const auto own = [&](const at::Tensor& whole) { return troupe::copy_to_group(whole, *tp_).narrow(0, kv_heads_.begin * head_dim_, kv_heads_.size * head_dim_); };
    y = at::linear(x, own(replicated.weight), own(replicated.bias));
  }
  return y.unflatten(-1, {kv_heads_.size, head_dim_});
}

/// [B, S, kv heads, D] -> [B, S, h, D]: what each query head here looks at.
at::Tensor LanguageAttention::for_each_head(const at::Tensor& kv) const {
  if (kv_heads_.size * group_ == heads_.size) return group_ == 1 ? kv : at::repeat_interleave(kv, group_, 2);
  std::vector<std::int64_t> map;
  for (std::int64_t head = heads_.begin; head < heads_.begin + heads_.size; ++head) map.push_back(head / group_ - kv_heads_.begin);
  return kv.index_select(2, at::tensor(map, at::kLong));
}

at::Tensor LanguageAttention::forward(const at::Tensor& x, const Rotation& rotation, const Visibility& visible, KeyValueCache* cache) const {
  const at::Tensor shared = troupe::copy_to_group(x, *tp_);
  const at::Tensor q = rotate(q_.forward_copied(shared).unflatten(-1, {heads_.size, head_dim_}), rotation, RotateIn::kOwnPrecision);
  at::Tensor k = rotate(project(k_, all_k_, shared), rotation, RotateIn::kOwnPrecision);
  at::Tensor v = project(v_, all_v_, shared);
  const bool continues = cache != nullptr && cache->keys.defined();
  if (continues) {
    k = at::cat({cache->keys, k}, 1);
    v = at::cat({cache->values, v}, 1);
  }
  if (cache != nullptr) *cache = {k, v};
  k = for_each_head(k);
  v = for_each_head(v);
  at::Tensor out;
  if (q.numel() == 0) {
    // no samples or no heads here: still a function of all three, so that backward joins the collectives
    out = q + (k + v).sum(1, /*keepdim=*/true);
  } else {
    // a query that continues is one token, which sees all before it
    out = at::scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), visible.mask.defined() ? std::optional(visible.mask) : std::nullopt, 0.0,
                                           !visible.mask.defined() && !continues)
              .transpose(1, 2);
  }
  return o_.forward(out.flatten(2));
}

}  // namespace qwen_vl
