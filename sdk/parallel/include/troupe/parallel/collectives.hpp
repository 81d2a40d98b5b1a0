#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/layout/mesh.hpp>
#include <troupe/transport/group.hpp>

namespace troupe {

// Collectives that autograd can see. All block the calling rank; every member calls them in the same
// order, in backward too. Groups of one member cost nothing. They throw Exception with what the group failed
// with. Legend: n rows here, N rows of all members, H heads, h heads here, D head dim.

/// Identity forward, sum of the gradients over the group backward: where a replicated value enters a
/// sharded computation (Megatron's f).
[[nodiscard]] at::Tensor copy_to_group(const at::Tensor& x, transport::Group& group);

/// Sum over the group forward, identity backward: where partial results become a replicated value
/// (Megatron's g).
[[nodiscard]] at::Tensor reduce_from_group(const at::Tensor& x, transport::Group& group);

/// How many rows and heads each member holds: host integers (NUM-6).
struct ExchangeLayout {
  std::vector<std::int64_t> rows;   ///< By member.
  std::vector<Share> heads;         ///< By member: share_of(H, size, member).
};

/// Sequence shard to head shard (DeepSpeed-Ulysses). [n, H, D] -> [N, h, D]; members without rows or heads
/// take part. Source: Jacobs et al. 2023, arXiv 2309.14509, section 3.
[[nodiscard]] at::Tensor rows_to_heads(const at::Tensor& x_nhd, const ExchangeLayout& layout, transport::Group& group);
/// The inverse, and the adjoint: [N, h, D] -> [n, H, D].
[[nodiscard]] at::Tensor heads_to_rows(const at::Tensor& x_nhd, const ExchangeLayout& layout, transport::Group& group);

/// All members' rows in order. [n, ...] -> [N, ...]. Backward sums the members' gradients of each row
/// (they are parts) and returns this member's.
[[nodiscard]] at::Tensor gather_rows(const at::Tensor& x, const std::vector<std::int64_t>& rows, transport::Group& group);
/// Its adjoint: sums the members' parts of all rows and returns this member's. [N, ...] -> [n, ...].
/// Backward gathers.
[[nodiscard]] at::Tensor reduce_scatter_rows(const at::Tensor& x, const std::vector<std::int64_t>& rows, transport::Group& group);

/// How a dim is divided over the members: host integers, zero included.
struct DimShards {
  int dim = 0;
  std::vector<std::int64_t> sizes;   ///< By member.
};

/// Sharded to replicated: the members' shards of one dim in order. Backward takes this member's slice of a
/// gradient that is the same on all; where each member's is a part, gather_rows() is meant.
[[nodiscard]] at::Tensor gather_dim(const at::Tensor& x, const DimShards& shards, transport::Group& group);
/// The inverse, and the adjoint: replicated to sharded, this member's slice. Backward gathers.
[[nodiscard]] at::Tensor split_dim(const at::Tensor& x, const DimShards& shards, transport::Group& group);

}  // namespace troupe
