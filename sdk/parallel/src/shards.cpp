#include <troupe/parallel/parameters.hpp>

#include <cstring>
#include <numeric>
#include <optional>

#include <ATen/ATen.h>

#include <troupe/base/text.hpp>

namespace troupe {
namespace {

/// Copies between the ranges of the global tensor and the rows of the local one.
template <class Copy>
void for_ranges(const ParameterSpec& spec, const std::vector<Share>& ranges, Copy copy) {
  std::int64_t local = 0;
  for (const Share& range : ranges) {
    copy(spec.shard.dim, range, local);
    local += range.size;
  }
}

/// By bits, as NUM-3 says: a NaN equals itself, 0 is not -0.
bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  const at::Tensor left = a.contiguous();
  const at::Tensor right = b.contiguous();
  return left.numel() == 0 || std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0;
}

}  // namespace

Result<std::vector<Share>> shard_ranges(const ParameterSpec& spec, const Mesh& mesh, int rank) {
  const ParameterShard& shard = spec.shard;
  if (shard.dim < 0) return std::vector<Share>{};
  const auto wrong = [&](auto... parts) { return fail(Errc::kInvalidArgument, text("parameter ", spec.name, ": ", parts...)); };
  if (shard.dim >= static_cast<int>(spec.shape.size())) return wrong("shard dim ", shard.dim, " of a tensor with ", spec.shape.size(), " dims");
  const std::int64_t size = spec.shape[static_cast<std::size_t>(shard.dim)];
  const std::vector<std::int64_t> parts = shard.parts.empty() ? std::vector<std::int64_t>{size} : shard.parts;
  if (std::accumulate(parts.begin(), parts.end(), std::int64_t{0}) != size) return wrong("the parts do not add up to ", size);
  std::vector<Share> out;
  std::int64_t begin = 0;
  for (const std::int64_t part : parts) {
    if (shard.unit < 1 || part % shard.unit != 0) return wrong("a part of ", part, " is not divisible by the unit ", shard.unit);
    const Share mine = share_of(part / shard.unit, mesh.size(shard.axis), mesh.coordinate(rank, shard.axis));
    out.push_back({begin + mine.begin * shard.unit, mine.size * shard.unit});
    begin += part;
  }
  return out;
}

Result<at::Tensor> shard_of(const ParameterSpec& spec, const Mesh& mesh, int rank, const at::Tensor& global) {
  if (global.sizes() != at::IntArrayRef(spec.shape)) {
    return fail(Errc::kMismatch, text("parameter ", spec.name, ": expected ", at::IntArrayRef(spec.shape), ", got ", global.sizes()));
  }
  if (spec.shard.dim < 0) return global.clone();
  auto ranges = shard_ranges(spec, mesh, rank);
  if (!ranges) return fail(std::move(ranges.error()));
  std::vector<at::Tensor> parts;
  for_ranges(spec, *ranges, [&](int dim, const Share& range, std::int64_t) { parts.push_back(global.narrow(dim, range.begin, range.size)); });
  return at::cat(parts, spec.shard.dim).contiguous();
}

Result<at::Tensor> assemble(const ParameterSpec& spec, const Mesh& mesh, std::span<const at::Tensor> by_rank) {
  if (static_cast<int>(by_rank.size()) != mesh.size()) {
    return fail(Errc::kMismatch, text("parameter ", spec.name, ": ", by_rank.size(), " parts for ", mesh.size(), " ranks; give one per rank"));
  }
  std::vector<std::optional<int>> first(static_cast<std::size_t>(mesh.size(spec.shard.axis)));
  at::Tensor out = at::empty(spec.shape, by_rank.front().options());
  for (int rank = 0; rank < mesh.size(); ++rank) {
    const at::Tensor& local = by_rank[static_cast<std::size_t>(rank)];
    const int coordinate = spec.shard.dim < 0 ? 0 : mesh.coordinate(rank, spec.shard.axis);
    auto& holder = first[static_cast<std::size_t>(coordinate)];
    if (holder) {
      if (same_bits(local, by_rank[static_cast<std::size_t>(*holder)])) continue;
      return fail(Errc::kMismatch, text(spec.name, " differs between ranks ", *holder, " and ", rank, ", which hold the same part: a gradient was not summed over one of the axes of ",
                                        mesh.to_string()));
    }
    holder = rank;
    if (spec.shard.dim < 0) {
      out.copy_(local);
      continue;
    }
    auto ranges = shard_ranges(spec, mesh, rank);
    if (!ranges) return fail(std::move(ranges.error()));
    for_ranges(spec, *ranges, [&](int dim, const Share& range, std::int64_t at) { out.narrow(dim, range.begin, range.size).copy_(local.narrow(dim, at, range.size)); });
  }
  return out;
}

}  // namespace troupe
