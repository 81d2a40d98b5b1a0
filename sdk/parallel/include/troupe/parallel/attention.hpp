#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/layout/segments.hpp>
#include <troupe/transport/group.hpp>

namespace troupe {

/// Lengths of the whole items in what the members of an axis hold together, in order: pieces of one item
/// that follow each other are one. Host integers (NUM-6).
[[nodiscard]] std::vector<std::int64_t> item_lengths(std::span<const Segments> shards);

enum class Mask : std::uint8_t { kNone, kCausal };

/// Attention inside each item of a packed sequence; runs of items of equal length go as one batch.
/// Shapes: q, k, v [N, H, D], lengths add up to N -> [N, H, D]. Any strides.
/// Throws Exception: kMismatch when they do not add up.
[[nodiscard]] at::Tensor packed_attention(const at::Tensor& q_nhd, const at::Tensor& k_nhd, const at::Tensor& v_nhd,
                                          std::span<const std::int64_t> lengths, Mask mask = Mask::kNone);

/// Attention over items whose rows are sharded over `sp`: four exchanges (q, k, v, out), heads sharded
/// meanwhile, uneven heads and rows and members without either included.
/// `shards[m]` says what member m holds (Packed::shards). Shapes: q, k, v [n, H, D] -> [n, H, D].
/// Throws Exception: kInvalidArgument for shards of another group, q, k and v unlike each other; kMismatch for
/// rows other than the segments tell; what the group failed with.
/// Source: Jacobs et al. 2023 (DeepSpeed-Ulysses), arXiv 2309.14509, section 3.
[[nodiscard]] at::Tensor ulysses_attention(const at::Tensor& q_nhd, const at::Tensor& k_nhd, const at::Tensor& v_nhd,
                                           std::span<const Segments> shards, transport::Group& sp, Mask mask = Mask::kNone);

}  // namespace troupe
