#include <troupe/layout/port_layout.hpp>

#include <algorithm>
#include <map>

#include <troupe/base/text.hpp>

namespace troupe {
namespace {

/// A stretch of one item that a source rank holds.
struct Held {
  std::int64_t first = 0;         ///< Row inside the item.
  std::int64_t rows = 0;
  int rank = 0;
  std::int64_t begin = 0;         ///< Row in the rank's packed tensor.
};

/// Segments come from modules of the user: a negative count would shift every row after it.
Result<void> check(std::span<const Segments> held, const char* side) {
  for (std::size_t rank = 0; rank < held.size(); ++rank) {
    for (const Segment& piece : held[rank]) {
      if (piece.rows >= 0 && piece.first >= 0) continue;
      return fail(Errc::kInvalidArgument, text("item ", piece.id, " on ", side, " rank ", rank, ": first and rows must be >= 0, got ",
                                               piece.first, " and ", piece.rows));
    }
  }
  return {};
}

using Index = std::map<std::int64_t, std::vector<Held>>;

Index index_of(std::span<const Segments> source) {
  Index out;
  for (std::size_t rank = 0; rank < source.size(); ++rank) {
    std::int64_t begin = 0;
    for (const Segment& piece : source[rank]) {
      if (piece.rows > 0) out[piece.id].push_back({piece.first, piece.rows, static_cast<int>(rank), begin});
      begin += piece.rows;
    }
  }
  return out;
}

/// Among the stretches that cover `row` of an item the one this reader takes: replica `reader` modulo
/// their number; null when none does.
const Held* cover(const std::vector<Held>& stretches, std::int64_t row, std::size_t reader) {
  const auto covers = [row](const Held& held) { return held.first <= row && row < held.first + held.rows; };
  const auto count = static_cast<std::size_t>(std::ranges::count_if(stretches, covers));
  if (count == 0) return nullptr;
  std::size_t skip = reader % count;
  for (const Held& held : stretches) {
    if (covers(held) && skip-- == 0) return &held;
  }
  return nullptr;
}

Result<std::vector<Slice>> slices_for(const Index& index, const Segments& wanted, std::size_t reader) {
  static const std::vector<Held> kNone;
  std::vector<Slice> out;
  std::int64_t begin = 0;
  for (const Segment& piece : wanted) {
    const auto found = index.find(piece.id);
    const auto& stretches = found == index.end() ? kNone : found->second;
    const std::int64_t end = piece.first + piece.rows;
    for (std::int64_t row = piece.first; row < end;) {
      const Held* held = cover(stretches, row, reader);
      if (held == nullptr) {
        return fail(Errc::kMismatch, text("item ", piece.id, ": destination rank ", reader, " needs rows ", piece.first, " .. ", end,
                                          ", but no source rank holds row ", row));
      }
      const std::int64_t rows = std::min(end, held->first + held->rows) - row;
      out.push_back({held->rank, held->begin + (row - held->first), begin, rows});
      begin += rows;
      row += rows;
    }
  }
  return out;
}

}  // namespace

Result<std::vector<std::vector<Slice>>> reshard(std::span<const Segments> source, std::span<const Segments> destination) {
  if (auto ok = check(source, "source"); !ok) return fail(std::move(ok.error()));
  if (auto ok = check(destination, "destination"); !ok) return fail(std::move(ok.error()));
  const Index index = index_of(source);
  std::vector<std::vector<Slice>> out;
  for (std::size_t rank = 0; rank < destination.size(); ++rank) {
    auto slices = slices_for(index, destination[rank], rank);
    if (!slices) return fail(std::move(slices.error()));
    out.push_back(std::move(*slices));
  }
  return out;
}

}  // namespace troupe
