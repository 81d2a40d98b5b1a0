#include "vision.hpp"

#include <algorithm>

#include <ATen/ATen.h>

#include <troupe/base/text.hpp>
#include <troupe/parallel/attention.hpp>

#include "batch.hpp"

namespace qwen_vl {
namespace {

using troupe::LinearOptions;
using troupe::Packed;
using troupe::Segments;

constexpr double kEpsilon = 1e-6;   // of the tower's norms; not in the config

/// The same rows as pieces of frames instead of windows: what full attention is inside of.
std::vector<Segments> frames_of(const std::vector<Segments>& shards) {
  std::vector<Segments> out;
  std::int64_t frame = -1;
  std::int64_t first = 0;   // of the next row in its frame
  for (const Segments& windows : shards) {
    Segments pieces;
    for (const auto& window : windows) {
      const bool is_new = frame_of(window.id) != frame;
      if (is_new) first = 0;
      frame = frame_of(window.id);
      if (is_new || pieces.empty()) pieces.push_back({.id = frame, .sample = window.sample, .first = first});
      pieces.back().rows += window.rows;
      first += window.rows;
    }
    out.push_back(std::move(pieces));
  }
  return out;
}

std::vector<std::int64_t> lengths_of(const Segments& windows) {
  std::vector<std::int64_t> out;
  for (const auto& window : windows) out.push_back(window.rows);
  return out;
}

}  // namespace

Vision::Vision(troupe::Rank& rank, const VisionConfig& config)
    : config_(config),
      dtype_(rank.parameters("").options().dtype),
      sp_(rank.axis("sp")),
      embed_(rank.parameters("patch_embed.proj")
                 .add("weight", {config.hidden, config.channels, config.temporal_patch, config.patch, config.patch}, troupe::Initial::normal(config.initial_deviation))),
      merger_norm_(rank.parameters("merger.ln_q"), config.hidden, kEpsilon),
      merger_in_(rank.parameters("merger.mlp.0"), config.hidden * config.merge_unit(), config.hidden * config.merge_unit(), {.deviation = config.initial_deviation}),
      merger_out_(rank.parameters("merger.mlp.2"), config.hidden * config.merge_unit(), config.out_hidden, {.deviation = config.initial_deviation}) {
  const LinearOptions options{.deviation = config.initial_deviation};
  for (std::int64_t layer = 0; layer < config.depth; ++layer) {
    const auto scope = rank.parameters("blocks").scope(std::to_string(layer));
    const auto mlp = scope.scope("mlp");
    blocks_.push_back({std::ranges::find(config.full_attention, layer) != config.full_attention.end(),
                       troupe::RmsNorm(scope.scope("norm1"), config.hidden, kEpsilon), troupe::RmsNorm(scope.scope("norm2"), config.hidden, kEpsilon),
                       troupe::Linear(scope.scope("attn.qkv"), config.hidden, 3 * config.hidden, options),
                       troupe::Linear(scope.scope("attn.proj"), config.hidden, config.hidden, options),
                       troupe::Linear(mlp.scope("gate_proj"), config.hidden, config.intermediate, options),
                       troupe::Linear(mlp.scope("up_proj"), config.hidden, config.intermediate, options),
                       troupe::Linear(mlp.scope("down_proj"), config.intermediate, config.hidden, options)});
  }
}

at::Tensor Vision::embed(const at::Tensor& patches) const {
  return at::linear(patches.to(dtype_), embed_.view({config_.hidden, config_.patch_values()}));
}

at::Tensor Vision::attend(const Block& block, const at::Tensor& x, const Rotation& rotation, const Packed& patches, const std::vector<Segments>& frames) const {
  const auto qkv = block.qkv.forward(x).view({x.size(0), 3, config_.heads, config_.head_dim()}).unbind(1);
  const at::Tensor q = rotate(qkv[0], rotation, RotateIn::kTablePrecision);
  const at::Tensor k = rotate(qkv[1], rotation, RotateIn::kTablePrecision);
  const at::Tensor out = block.is_full ? troupe::ulysses_attention(q, k, qkv[2], frames, sp_)
                                       : troupe::packed_attention(q, k, qkv[2], lengths_of(patches.segments));
  return block.proj.forward(out.reshape({x.size(0), config_.hidden}));
}

at::Tensor Vision::merge(const at::Tensor& x) const {
  const std::int64_t unit = config_.merge_unit();
  const at::Tensor units = merger_norm_.forward(x).reshape({x.size(0) / unit, config_.hidden * unit});
  return merger_out_.forward(at::gelu(merger_in_.forward(units)));
}

Packed Vision::forward(const Packed& patches, const Packed& coordinates) {
  const Rotation rotation = vision_rotation(coordinates.rows, config_.head_dim(), config_.rope_theta, dtype_);
  const std::vector<Segments> frames = frames_of(patches.shards);
  at::Tensor x = embed(patches.rows);
  for (const Block& block : blocks_) {
    x = x + attend(block, block.norm1.forward(x), rotation, patches, frames);
    const at::Tensor y = block.norm2.forward(x);
    x = x + block.down.forward(at::silu(block.gate.forward(y)) * block.up.forward(y));
  }
  return {merge(x), troupe::or_throw(troupe::merged(patches.segments, config_.merge_unit()))};
}

std::vector<troupe::PortSpec> Vision::input_ports() const {
  return {{"patches", {config_.patch_values()}, dtype_}, {"coordinates", {2}, at::kLong}};
}
std::vector<troupe::PortSpec> Vision::output_ports() const { return {{"picture tokens", {config_.out_hidden}, dtype_}}; }

}  // namespace qwen_vl
