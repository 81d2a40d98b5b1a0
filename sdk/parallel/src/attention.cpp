#include <troupe/parallel/attention.hpp>

#include <numeric>
#include <string>
#include <utility>

#include <ATen/ATen.h>

#include <troupe/base/text.hpp>
#include <troupe/parallel/collectives.hpp>

namespace troupe {
namespace {

/// Neighbouring items of equal length.
struct Run {
  std::int64_t count = 0;
  std::int64_t length = 0;
};

std::vector<Run> runs_of(std::span<const std::int64_t> lengths) {
  std::vector<Run> out;
  for (const std::int64_t length : lengths) {
    if (length == 0) continue;
    if (out.empty() || out.back().length != length) out.push_back({0, length});
    ++out.back().count;
  }
  return out;
}

/// The items of a run as one batch. Rows need not be contiguous: q, k and v are often views of one product.
at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Run& run, Mask mask) {
  const auto batch = [&](const at::Tensor& x) { return x.unflatten(0, {run.count, run.length}).transpose(1, 2); };
  const at::Tensor out = at::scaled_dot_product_attention(batch(q), batch(k), batch(v), {}, 0.0, mask == Mask::kCausal);
  return out.transpose(1, 2).reshape(q.sizes());
}

[[noreturn]] void refuse(Errc code, std::string message) { throw Exception(Error{.code = code, .message = std::move(message)}); }

/// What can be seen before the first exchange; a member that differs would fail all of them, with less to say.
void check_exchange(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, std::span<const Segments> shards, const transport::Group& sp) {
  if (shards.size() != static_cast<std::size_t>(sp.size())) {
    refuse(Errc::kInvalidArgument, text("ulysses_attention: segments of ", shards.size(), " members for a group of ", sp.size(),
                                        "; the edge must shard rows over '", sp.name(), "' (balance or shard_rows), which fills Packed::shards"));
  }
  const std::int64_t rows = rows_of(shards[static_cast<std::size_t>(sp.rank())]);
  if (q.dim() != 3 || q.sizes() != k.sizes() || q.sizes() != v.sizes()) {
    refuse(Errc::kInvalidArgument, text("ulysses_attention: q, k and v must be alike [rows, heads, head dim], got ", q.sizes(), ", ", k.sizes(), " and ",
                                        v.sizes(), "; repeat kv heads to the heads of q"));
  }
  if (q.size(0) != rows) refuse(Errc::kMismatch, text("ulysses_attention: the segments tell ", rows, " rows here, q has ", q.size(0)));
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
  const std::int64_t told = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  if (told != q_nhd.size(0)) refuse(Errc::kMismatch, text("packed_attention: the lengths add up to ", told, " rows, q has ", q_nhd.size(0)));
  // nothing to attend to: still a function of all three, so that every member's backward takes the same path
  if (q_nhd.numel() == 0) return q_nhd + k_nhd + v_nhd;
  const auto runs = runs_of(lengths);
  if (runs.size() == 1) return attend(q_nhd, k_nhd, v_nhd, runs.front(), mask);
  std::vector<std::int64_t> rows;
  for (const Run& run : runs) rows.push_back(run.count * run.length);
  // one split, whose backward is one cat: a narrow per run would add up as many gradients of full size
  const auto q = q_nhd.split_with_sizes(rows);
  const auto k = k_nhd.split_with_sizes(rows);
  const auto v = v_nhd.split_with_sizes(rows);
  std::vector<at::Tensor> parts;
  for (std::size_t i = 0; i < runs.size(); ++i) parts.push_back(attend(q[i], k[i], v[i], runs[i], mask));
  return at::cat(parts, 0);
}

at::Tensor ulysses_attention(const at::Tensor& q_nhd, const at::Tensor& k_nhd, const at::Tensor& v_nhd, std::span<const Segments> shards,
                             transport::Group& sp, Mask mask) {
  check_exchange(q_nhd, k_nhd, v_nhd, shards, sp);
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
