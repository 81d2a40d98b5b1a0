#include "language.hpp"

#include <algorithm>
#include <numeric>

#include <ATen/ATen.h>

#include <troupe/base/text.hpp>
#include <troupe/parallel/attention.hpp>
#include <troupe/parallel/collectives.hpp>

#include "initial.hpp"

namespace stamps {
namespace {

constexpr std::int64_t kPictureTokens = kPatches / kMerge;

}  // namespace

using troupe::Initial;
using troupe::Packed;

Language::Language(troupe::Rank& rank, const LanguageConfig& config)
    : config_(config),
      dtype_(rank.parameters("").options().dtype),
      tp_(rank.axis("tp")),
      heads_here_(troupe::share_of(config.heads, tp_.size(), tp_.rank()).size),
      tokens_(rank.parameters("tokens"), config.vocabulary, config.width, tp_, "tp", kTokenSpread),
      positions_(rank.parameters("positions").add("weight", {kPictureTokens + kMaxTokens, config.width}, Initial::normal(kPositionSpread))),
      norm_(rank.parameters("norm"), config.width) {
  if (tp_.size() > config.heads) {  // NUM-5: said before anything is allocated on a device
    throw troupe::Exception({troupe::Errc::kInvalidArgument, troupe::text("language tp=", tp_.size(), " needs at least as many heads; the model has ", config.heads)});
  }
  const std::int64_t width = config.width;
  const std::int64_t head = width / config.heads;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const auto scope = rank.parameters("blocks").scope(std::to_string(layer));
    blocks_.push_back({troupe::LayerNorm(scope.scope("norm1"), width), troupe::LayerNorm(scope.scope("norm2"), width),
                       troupe::ColumnParallelLinear(scope.scope("qkv"), width, 3 * width, tp_,
                                                    {.bias = false, .unit = head, .parts = {width, width, width}, .deviation = spread(width)}),
                       troupe::RowParallelLinear(scope.scope("out"), width, width, tp_, {.unit = head, .deviation = spread(width, config.layers)}),
                       troupe::ColumnParallelLinear(scope.scope("up"), width, 4 * width, tp_, {.deviation = spread(width)}),
                       troupe::RowParallelLinear(scope.scope("down"), 4 * width, width, tp_, {.deviation = spread(4 * width, config.layers)})});
  }
}

at::Tensor Language::run(const Block& block, const at::Tensor& x) const {
  const std::int64_t batch = x.size(0);
  const std::int64_t length = x.size(1);
  const std::int64_t head = config_.width / config_.heads;
  const auto qkv = block.qkv.forward(block.before_attention.forward(x)).view({batch * length, 3, heads_here_, head}).unbind(1);
  const std::vector<std::int64_t> lengths(static_cast<std::size_t>(batch), length);
  const at::Tensor attended = troupe::packed_attention(qkv[0], qkv[1], qkv[2], lengths, troupe::Mask::kCausal);
  const at::Tensor y = x + block.out.forward(attended.reshape({batch, length, heads_here_ * head}));
  return y + block.down.forward(at::gelu(block.up.forward(block.before_mlp.forward(y))));
}

/// [B, picture tokens + S, width]. A sample without a picture keeps zeros in its place.
at::Tensor Language::hidden(const at::Tensor& ids, const Packed& pictures) const {
  const std::int64_t batch = ids.size(0);
  std::vector<std::int64_t> place;   // of each picture row among all samples' picture slots
  for (const auto& item : pictures.segments) {
    const auto sample = std::ranges::find(pictures.samples, item.sample) - pictures.samples.begin();
    for (std::int64_t row = 0; row < item.rows; ++row) place.push_back(sample * kPictureTokens + item.first + row);
  }
  const at::Tensor slots = at::zeros({batch * kPictureTokens, config_.width}, pictures.rows.options().requires_grad(false))
                               .index_add(0, at::tensor(place, at::kLong), pictures.rows);
  at::Tensor x = at::cat({slots.view({batch, kPictureTokens, config_.width}), tokens_.forward(ids)}, 1);
  x = x + positions_.narrow(0, 0, x.size(1));
  for (const Block& block : blocks_) x = run(block, x);
  return norm_.forward(x);
}

troupe::Loss Language::forward(const Text& text, const Packed& pictures) {
  const std::int64_t length = text.ids.size(1);
  const at::Tensor x = hidden(text.ids, pictures).narrow(1, kPictureTokens, length);
  const at::Tensor logits = tokens_.logits(x).reshape({text.ids.size(0) * length, tokens_.share().size});
  const at::Tensor losses = troupe::vocab_parallel_cross_entropy(logits, text.labels.reshape({text.ids.size(0) * length}), tokens_.share(), tp_);
  return {losses.sum(), std::accumulate(text.counted.begin(), text.counted.end(), std::int64_t{0})};
}

std::vector<std::int64_t> Language::next_tokens(const at::Tensor& ids, const Packed& pictures) {
  const at::Tensor x = hidden(ids, pictures);
  const at::Tensor last = tokens_.logits(x.select(1, x.size(1) - 1)).transpose(0, 1).contiguous();  // [V / tp, B]
  std::vector<std::int64_t> rows;
  for (int member = 0; member < tp_.size(); ++member) rows.push_back(troupe::share_of(config_.vocabulary, tp_.size(), member).size);
  at::Tensor scores = troupe::gather_rows(last, rows, tp_);
  for (const auto never : {kPad, kBegin, kUnknown}) scores = scores.index_fill(0, at::tensor({static_cast<std::int64_t>(never)}, at::kLong), -1e30);
  const at::Tensor best = scores.argmax(0).contiguous();
  return {best.data_ptr<std::int64_t>(), best.data_ptr<std::int64_t>() + best.numel()};
}

std::vector<troupe::PortSpec> Language::input_ports() const {
  return {{"text", {}, c10::ScalarType::Long}, {"picture tokens", {config_.width}, dtype_}};
}

}  // namespace stamps
