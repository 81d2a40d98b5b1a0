#include <troupe/parallel/attention.hpp>

#include <ATen/ATen.h>

#include <troupe/parallel/collectives.hpp>

namespace troupe {
namespace {

/// `count` items of `length` rows from row `begin` on, as one batch.
at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, std::int64_t begin, std::int64_t count, std::int64_t length, Mask mask) {
  const auto batch = [&](const at::Tensor& x) {
    return x.narrow(0, begin, count * length).view({count, length, x.size(1), x.size(2)}).transpose(1, 2);
  };
  const at::Tensor out = at::scaled_dot_product_attention(batch(q), batch(k), batch(v), {}, 0.0, mask == Mask::kCausal);
  return out.transpose(1, 2).reshape({count * length, q.size(1), q.size(2)});
}

}  // namespace

std::vector<std::int64_t> item_lengths(std::span<const Segments> shards) {
  std::vector<std::int64_t> out;
  const Segment* last = nullptr;
  for (const Segments& held : shards) {
    for (const Segment& piece : held) {
      if (piece.rows == 0) continue;
      if (last != nullptr && last->id == piece.id) {
        out.back() += piece.rows;
      } else {
        out.push_back(piece.rows);
      }
      last = &piece;
    }
  }
  return out;
}

at::Tensor packed_attention(const at::Tensor& q_nhd, const at::Tensor& k_nhd, const at::Tensor& v_nhd, std::span<const std::int64_t> lengths, Mask mask) {
  // nothing to attend to: still a function of all three, so that every member's backward takes the same path
  if (q_nhd.numel() == 0 || lengths.empty()) return q_nhd + k_nhd + v_nhd;
  std::vector<at::Tensor> parts;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < lengths.size();) {
    std::size_t end = i + 1;
    while (end < lengths.size() && lengths[end] == lengths[i]) ++end;
    const auto count = static_cast<std::int64_t>(end - i);
    parts.push_back(attend(q_nhd.contiguous(), k_nhd.contiguous(), v_nhd.contiguous(), begin, count, lengths[i], mask));
    begin += count * lengths[i];
    i = end;
  }
  return parts.size() == 1 ? parts.front() : at::cat(parts, 0);
}

at::Tensor ulysses_attention(const at::Tensor& q_nhd, const at::Tensor& k_nhd, const at::Tensor& v_nhd, std::span<const Segments> shards,
                             transport::Group& sp, Mask mask) {
  const auto lengths = item_lengths(shards);
  if (sp.size() == 1) return packed_attention(q_nhd, k_nhd, v_nhd, lengths, mask);
  ExchangeLayout layout;
  for (int member = 0; member < sp.size(); ++member) {
    layout.rows.push_back(rows_of(shards[static_cast<std::size_t>(member)]));
    layout.heads.push_back(share_of(q_nhd.size(1), sp.size(), member));
  }
  const at::Tensor q = rows_to_heads(q_nhd, layout, sp);
  const at::Tensor k = rows_to_heads(k_nhd, layout, sp);
  const at::Tensor v = rows_to_heads(v_nhd, layout, sp);
  return heads_to_rows(packed_attention(q, k, v, lengths, mask), layout, sp);
}

}  // namespace troupe
