#include <troupe/stage/edge.hpp>

#include <algorithm>
#include <map>

#include <ATen/ATen.h>

#include <troupe/base/text.hpp>
#include "rows.hpp"

namespace troupe::detail {
namespace {

/// Every item of the micro-batch in whole, by id, from pieces that lie on several ranks.
Segments whole_items(std::span<const Packed* const> sources, bool from_batch, const MicroRange& range) {
  std::map<std::int64_t, Segment> items;
  for (const Packed* source : sources) {
    for (Segment piece : source->segments) {
      if (from_batch) {
        if (piece.sample < range.begin || piece.sample >= range.begin + range.samples) continue;
        piece.sample -= range.begin;
      }
      const std::int64_t end = piece.first + piece.rows;
      auto [at, is_new] = items.try_emplace(piece.id, piece);
      at->second.rows = is_new ? end : std::max(at->second.rows, end);
      at->second.first = 0;
    }
  }
  Segments out;
  out.reserve(items.size());
  for (auto& [id, item] : items) out.push_back(item);
  return out;
}

void check_source(const Packed* source, const std::string& edge) {
  if (source == nullptr || !source->rows.defined() || source->rows.dim() < 1) {
    throw Exception(Error{.code = Errc::kMismatch,
                          .message = text("edge ", edge, ": rows are undefined; give [0, ...] when there are no items")});
  }
  const std::int64_t expected = rows_of(source->segments);
  if (source->rows.size(0) != expected) {
    throw Exception(Error{.code = Errc::kMismatch,
                          .message = text("edge ", edge, ": segments tell ", expected, " rows, the tensor has ",
                                          source->rows.size(0), "; return segments that match the rows")});
  }
}

/// What each member of the row axes holds, seen from `rank`: by coordinate.
std::vector<Segments> row_shards(const std::vector<Segments>& held, const PortLayout& layout, const Mesh& mesh, int rank) {
  std::vector<Segments> out(static_cast<std::size_t>(mesh.size_of(layout.row_axes)));
  const int sample_index = mesh.index_in(rank, layout.sample_axes);
  for (int other = 0; other < mesh.size(); ++other) {
    if (mesh.index_in(other, layout.sample_axes) != sample_index) continue;
    out[static_cast<std::size_t>(mesh.index_in(other, layout.row_axes))] = held[static_cast<std::size_t>(other)];
  }
  return out;
}

}  // namespace

SliceContext EdgeBase::context(const MicroRange& range, int rank) const {
  SliceContext out;
  out.layout = &layout;
  out.mesh = &mesh;
  out.rank = rank;
  out.range = range;
  out.edge = name;
  out.counters = counters.get();
  return out;
}

Packed gather_packed(std::span<const Packed* const> sources, bool from_batch, SliceContext& context) {
  for (const Packed* source : sources) check_source(source, context.edge);
  const Segments items = whole_items(sources, from_batch, context.range);
  const auto held = or_throw(distribute(items, context.range.samples, *context.layout, *context.mesh));
  auto samples = or_throw(distribute_samples(items, context.range.samples, *context.layout, *context.mesh));
  std::vector<Segments> source_segments;
  std::vector<at::Tensor> rows;
  for (const Packed* source : sources) {
    source_segments.push_back(source->segments);
    rows.push_back(source->rows);
  }
  const auto slices = or_throw(reshard(source_segments, held));
  const auto rank = static_cast<std::size_t>(context.rank);
  context.elements += static_cast<std::int64_t>(items.size());
  Packed out;
  out.rows = take_rows(rows, slices[rank], context.traffic, context.counters);
  out.segments = held[rank];
  out.samples = std::move(samples[rank]);
  out.shards = row_shards(held, *context.layout, *context.mesh, context.rank);
  return out;
}

std::vector<std::int64_t> samples_in_order(const SliceContext& context) {
  auto all = or_throw(distribute_samples({}, context.range.samples, *context.layout, *context.mesh));
  return std::move(all[static_cast<std::size_t>(context.rank)]);
}

at::Tensor slice_samples(const at::Tensor& value, SliceContext& context) {
  if (!value.defined()) return value;
  if (value.dim() < 1 || value.size(0) != context.range.batch_samples) {
    throw Exception(Error{.code = Errc::kMismatch,
                          .message = text("edge ", context.edge, ": dim 0 of a batch's tensor is its samples: expected ",
                                          context.range.batch_samples, ", got ", value.dim() < 1 ? 0 : value.size(0))});
  }
  std::vector<Slice> slices;
  for (const std::int64_t sample : context.samples) {
    const std::int64_t row = context.range.begin + sample;
    if (!slices.empty() && slices.back().source_begin + slices.back().rows == row) {
      ++slices.back().rows;
    } else {
      slices.push_back({0, row, 0, 1});
    }
  }
  return take_rows({&value, 1}, slices, context.traffic, context.counters);
}

void check_entries(std::size_t entries, const SliceContext& context) {
  if (static_cast<std::int64_t>(entries) == context.range.batch_samples) return;
  throw Exception(Error{.code = Errc::kMismatch,
                        .message = text("edge ", context.edge, ": a vector in a batch has one entry a sample: expected ", context.range.batch_samples, ", got ", entries)});
}

template <>
at::Tensor Edge<Packed>::make_leaf(Packed& value) {
  value.rows = value.rows.detach();
  value.rows.set_requires_grad(true);
  return value.rows;
}

void SampleCount::tensor(const at::Tensor& value) {
  if (!value.defined() || value.dim() < 1) return;
  if (samples >= 0 && samples != value.size(0)) {
    throw Exception(Error{.code = Errc::kMismatch,
                          .message = text("two tensors of one batch disagree on the number of samples (dim 0): ", samples,
                                          " and ", value.size(0))});
  }
  samples = value.size(0);
}

void SampleCount::packed(const Packed& value) {
  if (samples >= 0) return;  // tensors tell exactly; items only where there are none
  std::int64_t last = -1;
  for (const auto& segment : value.segments) last = std::max(last, segment.sample);
  if (last >= 0) packed_samples = std::max(packed_samples, last + 1);
}

}  // namespace troupe::detail
