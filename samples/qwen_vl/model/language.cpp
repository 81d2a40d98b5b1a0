#include "language.hpp"

#include <algorithm>

#include <ATen/ATen.h>

#include <troupe/base/text.hpp>
#include <troupe/parallel/collectives.hpp>

namespace qwen_vl {
namespace {

using troupe::LinearOptions;
using troupe::Packed;

/// Causal, and no look at padding; a token that could look at nothing (before it is only padding) looks at itself, so that
/// it stays finite. Nothing looks at it.
Visibility visibility_of(const Text& text) {
  if (std::ranges::all_of(text.padded, [](std::int64_t count) { return count == 0; })) return {};
  const std::int64_t length = text.ids.size(1);
  const at::Tensor causal = at::ones({length, length}, text.mask.options()).tril();
  const at::Tensor seen = causal.logical_and(text.mask.unsqueeze(1));   // [B, S, S]
  const at::Tensor blind = seen.any(-1, /*keepdim=*/true).logical_not();
  return {seen.logical_or(at::eye(length, text.mask.options()).logical_and(blind)).unsqueeze(1)};
}

/// Which sample of `images.samples` an item belongs to: the row of the text.
std::size_t row_of(const Packed& images, std::int64_t sample) {
  if (images.samples.empty()) return static_cast<std::size_t>(sample);
  return static_cast<std::size_t>(std::ranges::lower_bound(images.samples, sample) - images.samples.begin());
}

}  // namespace

Language::Language(troupe::Rank& rank, const LanguageConfig& config)
    : config_(config),
      dtype_(rank.parameters("").options().dtype),
      tp_(rank.axis("tp")),
      embedding_(rank.parameters("model.embed_tokens"), config.vocabulary, config.hidden, tp_, "tp", config.initial_deviation),
      norm_(rank.parameters("model.norm"), config.hidden, config.epsilon) {
  const LinearOptions plain{.bias = false, .deviation = config.initial_deviation};
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const auto scope = rank.parameters("model.layers").scope(std::to_string(layer));
    const auto mlp = scope.scope("mlp");
    layers_.push_back({troupe::RmsNorm(scope.scope("input_layernorm"), config.hidden, config.epsilon),
                       troupe::RmsNorm(scope.scope("post_attention_layernorm"), config.hidden, config.epsilon), LanguageAttention(scope.scope("self_attn"), config, tp_),
                       troupe::ColumnParallelLinear(mlp.scope("gate_proj"), config.hidden, config.intermediate, tp_, plain),
                       troupe::ColumnParallelLinear(mlp.scope("up_proj"), config.hidden, config.intermediate, tp_, plain),
                       troupe::RowParallelLinear(mlp.scope("down_proj"), config.intermediate, config.hidden, tp_, plain)});
  }
  if (!config.tied) head_.emplace(rank.parameters("lm_head"), config.hidden, config.vocabulary, tp_, plain);
}

/// [B, S, hidden]; picture tokens take the places of their placeholders, whose embeddings then have no part.
at::Tensor Language::embed(const Text& text, const Packed& images) const {
  const at::Tensor x = embedding_.forward(text.ids);
  std::vector<std::int64_t> places;
  std::vector<std::size_t> used(text.columns.size(), 0);
  for (const auto& item : images.segments) {
    const std::size_t row = row_of(images, item.sample);
    for (std::int64_t i = 0; i < item.rows; ++i) places.push_back(static_cast<std::int64_t>(row) * text.ids.size(1) + text.columns.at(row).at(used[row]++));
  }
  return x.flatten(0, 1).index_copy(0, at::tensor(places, at::kLong), images.rows.to(dtype_)).view(x.sizes());
}

at::Tensor Language::decode(at::Tensor x, const at::Tensor& positions, const Visibility& visible, std::vector<KeyValueCache>* caches) const {
  const Rotation rotation = language_rotation(positions, config_.sections, config_.rope_theta, dtype_);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    x = x + layer.attention.forward(layer.input_norm.forward(x), rotation, visible, caches == nullptr ? nullptr : &(*caches)[i]);
    const at::Tensor y = troupe::copy_to_group(layer.post_norm.forward(x), tp_);
    x = x + layer.down.forward(at::silu(layer.gate.forward_copied(y)) * layer.up.forward_copied(y));
  }
  return norm_.forward(x);
}

/// Scores of this rank's share of the vocabulary. [..., hidden] -> [..., V / tp]
at::Tensor Language::head(const at::Tensor& x) const { return head_ ? head_->forward(x) : embedding_.logits(x); }

troupe::Loss Language::forward(const Text& text, const Packed& images) {
  const at::Tensor x = decode(embed(text, images), text.positions, visibility_of(text), nullptr).flatten(0, 1);
  std::vector<std::int64_t> counted;
  for (std::size_t row = 0; row < text.counted.size(); ++row) {
    for (const std::int64_t column : text.counted[row]) counted.push_back(static_cast<std::int64_t>(row) * text.ids.size(1) + column);
  }
  const at::Tensor where = at::tensor(counted, at::kLong);
  const at::Tensor losses =
      troupe::vocab_parallel_cross_entropy(head(x.index_select(0, where)), text.labels.flatten().index_select(0, where), embedding_.share(), tp_);
  return {losses.sum(), static_cast<std::int64_t>(counted.size())};
}

at::Tensor Language::whole_vocabulary(const at::Tensor& scores) const {
  std::vector<std::int64_t> rows;
  for (int member = 0; member < tp_.size(); ++member) rows.push_back(troupe::share_of(config_.vocabulary, tp_.size(), member).size);
  return troupe::gather_rows(scores.movedim(-1, 0).contiguous(), rows, tp_).movedim(0, -1).contiguous();
}

at::Tensor Language::logits(const Text& text, const Packed& images) {
  return whole_vocabulary(head(decode(embed(text, images), text.positions, visibility_of(text), nullptr)));
}

at::Tensor Language::begin(const Text& text, const Packed& images) {
  caches_.assign(layers_.size(), {});
  return whole_vocabulary(head(decode(embed(text, images), text.positions, visibility_of(text), &caches_).select(1, text.ids.size(1) - 1)));
}

at::Tensor Language::next(const at::Tensor& ids, const at::Tensor& positions) {
  return whole_vocabulary(head(decode(embedding_.forward(ids), positions, {}, &caches_).select(1, 0)));
}

std::vector<troupe::PortSpec> Language::input_ports() const { return {{"text", {}, at::kLong}, {"picture tokens", {config_.hidden}, dtype_}}; }

}  // namespace qwen_vl
