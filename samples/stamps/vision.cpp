#include "vision.hpp"

#include <ATen/ATen.h>

#include <troupe/base/text.hpp>
#include <troupe/parallel/attention.hpp>

#include "initial.hpp"
#include "picture.hpp"

namespace stamps {

using troupe::Initial;
using troupe::LinearOptions;
using troupe::Packed;

Vision::Vision(troupe::Rank& rank, const VisionConfig& config)
    : config_(config),
      dtype_(rank.parameters("").options().dtype),
      sp_(rank.axis("sp")),
      embed_(rank.parameters("embed"), kPatchSize, config.width, {.deviation = spread(kPatchSize)}),
      positions_(rank.parameters("positions").add("weight", {kPatches, config.width}, Initial::normal(kPositionSpread))),
      norm_(rank.parameters("norm"), config.width),
      merge_(rank.parameters("merge"), config.width * kMerge, config.out, {.deviation = spread(config.width * kMerge)}) {
  const std::int64_t width = config.width;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const auto scope = rank.parameters("blocks").scope(std::to_string(layer));
    // a key's bias has no gradient (softmax cancels it): the fused projection has none
    blocks_.push_back({troupe::LayerNorm(scope.scope("norm1"), width), troupe::LayerNorm(scope.scope("norm2"), width),
                       troupe::Linear(scope.scope("qkv"), width, 3 * width, {.bias = false, .deviation = spread(width)}),
                       troupe::Linear(scope.scope("out"), width, width, {.deviation = spread(width, config.layers)}),
                       troupe::Linear(scope.scope("up"), width, 4 * width, {.deviation = spread(width)}),
                       troupe::Linear(scope.scope("down"), 4 * width, width, {.deviation = spread(4 * width, config.layers)})});
  }
}

at::Tensor Vision::run(const Block& block, const at::Tensor& x, const Packed& patches) const {
  const auto qkv = block.qkv.forward(block.before_attention.forward(x)).view({x.size(0), 3, config_.heads, config_.width / config_.heads}).unbind(1);
  const at::Tensor attended = troupe::ulysses_attention(qkv[0], qkv[1], qkv[2], patches.shards, sp_);
  const at::Tensor y = x + block.out.forward(attended.reshape({x.size(0), config_.width}));
  return y + block.down.forward(at::gelu(block.up.forward(block.before_mlp.forward(y))));
}

Packed Vision::forward(const Packed& patches) {
  std::vector<std::int64_t> place;   // of each row in its picture
  for (const auto& piece : patches.segments) {
    for (std::int64_t row = 0; row < piece.rows; ++row) place.push_back(piece.first + row);
  }
  at::Tensor x = embed_.forward(patches.rows) + positions_.index_select(0, at::tensor(place, at::kLong));
  for (const Block& block : blocks_) x = run(block, x, patches);
  const at::Tensor tokens = merge_.forward(norm_.forward(x).reshape({x.size(0) / kMerge, config_.width * kMerge}));
  return {tokens, troupe::or_throw(troupe::merged(patches.segments, kMerge))};
}

std::vector<troupe::PortSpec> Vision::input_ports() const { return {{"patches", {kPatchSize}, dtype_}}; }
std::vector<troupe::PortSpec> Vision::output_ports() const { return {{"picture tokens", {config_.out}, dtype_}}; }

}  // namespace stamps
