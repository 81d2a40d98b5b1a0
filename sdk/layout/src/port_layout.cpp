#include <troupe/layout/port_layout.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include <troupe/base/text.hpp>

namespace troupe {
namespace {

using Samples = std::vector<std::int64_t>;

/// More rows than any batch has, few enough that rows * ranks fits 64 bits.
constexpr std::int64_t kMostRows = std::int64_t{1} << 40;

Result<void> check_item(const Segment& item, std::int64_t samples) {
  const auto wrong = [&](auto... parts) { return fail(Errc::kInvalidArgument, text("item ", item.id, ": ", parts...)); };
  if (item.rows < 0) return wrong("rows must be >= 0, got ", item.rows);
  if (item.first < 0 || item.first > kMostRows) return wrong("first must be 0 .. ", kMostRows, ", got ", item.first);
  if (item.cut_multiple < 1) return wrong("cut_multiple must be >= 1, got ", item.cut_multiple);
  if (item.sample < 0 || item.sample >= samples) {
    return wrong("sample must be >= 0 and below the batch's ", samples, ", got ", item.sample);
  }
  if (!(item.cost >= 0) || !std::isfinite(item.cost)) return wrong("cost must be a number >= 0, got ", item.cost);
  return {};
}

Result<void> check(std::span<const Segment> segments, std::int64_t samples, const PortLayout& layout, const Mesh& mesh) {
  if (auto ok = mesh.check(); !ok) return ok;
  if (samples < 0) return fail(Errc::kInvalidArgument, text("a batch has >= 0 samples, got ", samples));
  std::set<std::string> axes;
  for (const auto* list : {&layout.sample_axes, &layout.row_axes}) {
    for (const auto& axis : *list) {
      if (!axes.insert(axis).second) return fail(Errc::kInvalidArgument, text("a layout uses axis '", axis, "' twice"));
    }
  }
  std::set<std::int64_t> ids;
  std::int64_t room = kMostRows;
  for (const Segment& item : segments) {
    if (auto ok = check_item(item, samples); !ok) return ok;
    if (!ids.insert(item.id).second) {
      return fail(Errc::kInvalidArgument, text("item ", item.id, ": the id occurs twice; ids are unique in a batch"));
    }
    if (item.rows > room) {
      return fail(Errc::kInvalidArgument, text("item ", item.id, ": its ", item.rows, " rows take the batch past ",
                                               kMostRows, " rows; cut it into smaller batches"));
    }
    room -= item.rows;
  }
  return {};
}

double cost_of(const Segment& item) { return item.cost > 0 ? item.cost : static_cast<double>(item.rows); }

/// Longest processing time first: the dearest sample goes to the cheapest shard; ties to the lower index.
std::vector<Samples> by_cost(std::span<const Segment> segments, std::int64_t samples, int shards) {
  std::vector<double> costs(static_cast<std::size_t>(samples), 0.0);
  for (const Segment& item : segments) costs[static_cast<std::size_t>(item.sample)] += cost_of(item);
  Samples order(static_cast<std::size_t>(samples));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater{}, [&](std::int64_t sample) { return costs[static_cast<std::size_t>(sample)]; });
  std::vector<Samples> out(static_cast<std::size_t>(shards));
  std::vector<double> load(out.size(), 0.0);
  for (const std::int64_t sample : order) {
    // equal loads (samples without items): the shard with fewer samples, so that counts stay even
    const auto lighter = [&](std::size_t a, std::size_t b) { return std::pair(load[a], out[a].size()) < std::pair(load[b], out[b].size()); };
    std::size_t best = 0;
    for (std::size_t shard = 1; shard < out.size(); ++shard) {
      if (lighter(shard, best)) best = shard;
    }
    load[best] += costs[static_cast<std::size_t>(sample)];
    out[best].push_back(sample);
  }
  for (auto& shard : out) std::ranges::sort(shard);
  return out;
}

std::vector<Samples> sample_shards(std::span<const Segment> segments, std::int64_t samples, const PortLayout& layout, int shards) {
  if (layout.assign == PortLayout::Assign::kByCost) return by_cost(segments, samples, shards);
  std::vector<Samples> out;
  for (int shard = 0; shard < shards; ++shard) {
    const Share share = share_of(samples, shards, shard);
    Samples mine(static_cast<std::size_t>(share.size));
    std::iota(mine.begin(), mine.end(), share.begin);
    out.push_back(std::move(mine));
  }
  return out;
}

/// The row nearest to `shard` of `shards` equal parts of the sequence at which it may be cut: between items, or
/// at a multiple of cut_multiple counted from the start of the whole item. In whole numbers, so that every rank
/// finds the same one; of two as near, the lower.
std::int64_t cut_near(const Segments& items, std::int64_t total, int shard, int shards) {
  const std::int64_t ideal = total * shard;  // here and below in units of 1/shards of a row
  std::int64_t begin = 0;
  for (const Segment& item : items) {
    if ((begin + item.rows) * shards < ideal) {
      begin += item.rows;
      continue;
    }
    const std::int64_t inside = ideal / shards - begin;
    const std::int64_t past = (item.first + inside) % item.cut_multiple;
    const std::int64_t before = begin + std::max<std::int64_t>(inside - past, 0);
    const std::int64_t after = begin + inside + std::min(item.cut_multiple - past, item.rows - inside);
    return ideal - before * shards <= after * shards - ideal ? before : after;
  }
  return total;
}

/// The pieces of `items` that lie in rows [begin, end) of their sequence. An item without rows belongs
/// where its place falls, so that it is somewhere exactly once.
Segments piece(const Segments& items, std::int64_t begin, std::int64_t end, bool is_last) {
  Segments out;
  std::int64_t at = 0;
  for (const Segment& item : items) {
    const std::int64_t from = std::max(begin, at);
    const std::int64_t to = std::min(end, at + item.rows);
    if (from < to) {
      Segment part = item;
      part.first = item.first + (from - at);
      part.rows = to - from;
      part.cost = item.cost * static_cast<double>(part.rows) / static_cast<double>(item.rows);
      out.push_back(part);
    } else if (item.rows == 0 && at >= begin && (at < end || is_last)) {
      out.push_back(item);
    }
    at += item.rows;
  }
  return out;
}

/// One sample shard's items over the row shards: contiguous, cut where allowed nearest to even.
std::vector<Segments> row_shards(const Segments& items, int shards) {
  if (shards == 1) return {items};
  const std::int64_t total = rows_of(items);
  std::vector<Segments> out;
  std::int64_t begin = 0;
  for (int shard = 0; shard < shards; ++shard) {
    const bool is_last = shard + 1 == shards;
    const std::int64_t end = is_last ? total : cut_near(items, total, shard + 1, shards);
    out.push_back(piece(items, begin, end, is_last));
    begin = end;
  }
  return out;
}

}  // namespace

PortLayout replicate(Grad grad) { return {.grad = grad}; }
PortLayout by_sample(std::string axis, Grad grad) { return {.sample_axes = {std::move(axis)}, .grad = grad}; }
PortLayout shard_rows(std::string axis, Grad grad) { return {.row_axes = {std::move(axis)}, .grad = grad}; }
PortLayout balance(std::string sample_axis, std::string row_axis, Grad grad) {
  return {.sample_axes = {std::move(sample_axis)}, .row_axes = {std::move(row_axis)}, .assign = PortLayout::Assign::kByCost, .grad = grad};
}

Result<std::vector<Segments>> distribute(std::span<const Segment> segments, std::int64_t samples, const PortLayout& layout, const Mesh& mesh) {
  if (auto ok = check(segments, samples, layout, mesh); !ok) return fail(std::move(ok.error()));
  const auto shards = sample_shards(segments, samples, layout, mesh.size_of(layout.sample_axes));
  std::vector<std::vector<Segments>> pieces;
  for (const Samples& mine : shards) {
    Segments items;
    for (const Segment& item : segments) {
      if (std::ranges::binary_search(mine, item.sample)) items.push_back(item);
    }
    pieces.push_back(row_shards(items, mesh.size_of(layout.row_axes)));
  }
  std::vector<Segments> out;
  for (int rank = 0; rank < mesh.size(); ++rank) {
    const auto sample_index = static_cast<std::size_t>(mesh.index_in(rank, layout.sample_axes));
    out.push_back(pieces[sample_index][static_cast<std::size_t>(mesh.index_in(rank, layout.row_axes))]);
  }
  return out;
}

Result<std::vector<std::vector<std::int64_t>>> distribute_samples(std::span<const Segment> segments, std::int64_t samples,
                                                                  const PortLayout& layout, const Mesh& mesh) {
  if (auto ok = check(segments, samples, layout, mesh); !ok) return fail(std::move(ok.error()));
  const auto shards = sample_shards(segments, samples, layout, mesh.size_of(layout.sample_axes));
  std::vector<Samples> out;
  for (int rank = 0; rank < mesh.size(); ++rank) out.push_back(shards[static_cast<std::size_t>(mesh.index_in(rank, layout.sample_axes))]);
  return out;
}

}  // namespace troupe
