#include "rows.hpp"

#include <ATen/ATen.h>

#include <troupe/torch/tensor.hpp>

namespace troupe::detail {
namespace {

/// Neighbouring slices of one source as one.
std::vector<Slice> joined(std::span<const Slice> slices) {
  std::vector<Slice> out;
  for (const Slice& slice : slices) {
    if (slice.rows == 0) continue;
    if (!out.empty() && out.back().source_rank == slice.source_rank && out.back().source_begin + out.back().rows == slice.source_begin) {
      out.back().rows += slice.rows;
    } else {
      out.push_back(slice);
    }
  }
  return out;
}

}  // namespace

at::Tensor take_rows(std::span<const at::Tensor> sources, std::span<const Slice> slices, EdgeTraffic& traffic,
                     transport::TransferCounters* counters) {
  const auto parts = joined(slices);
  const at::Tensor& first = sources.front();
  if (parts.empty()) return at::empty(first.narrow(0, 0, 0).sizes(), first.options());
  if (parts.size() == 1) {
    const Slice& part = parts.front();
    at::Tensor view = sources[static_cast<std::size_t>(part.source_rank)].narrow(0, part.source_begin, part.rows);
    if (view.is_contiguous() && is_aligned(view)) {
      traffic.referenced += static_cast<std::int64_t>(view.nbytes());
      if (counters != nullptr) counters->referenced_bytes += static_cast<std::int64_t>(view.nbytes());
      return view;
    }
  }
  std::int64_t rows = 0;
  for (const Slice& part : parts) rows += part.rows;
  std::vector<std::int64_t> sizes = first.sizes().vec();
  sizes[0] = rows;
  at::Tensor out = at::empty(sizes, first.options());
  std::int64_t at_row = 0;
  for (const Slice& part : parts) {
    out.narrow(0, at_row, part.rows).copy_(sources[static_cast<std::size_t>(part.source_rank)].narrow(0, part.source_begin, part.rows));
    at_row += part.rows;
  }
  traffic.copied += static_cast<std::int64_t>(out.nbytes());
  if (counters != nullptr) {
    counters->copied_bytes += static_cast<std::int64_t>(out.nbytes());
    counters->copies += static_cast<std::int64_t>(parts.size());
  }
  return out;
}

}  // namespace troupe::detail
