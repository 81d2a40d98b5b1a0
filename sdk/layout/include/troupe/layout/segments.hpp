#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <troupe/base/result.hpp>

namespace troupe {

/// One item of a packed tensor (a picture, a sound): host integers only (NUM-6).
struct Segment {
  std::int64_t id = 0;            ///< Unique in the global batch; edges restore order by it.
  std::int64_t sample = 0;        ///< Which sample of the global batch it belongs to.
  std::int64_t rows = 0;          ///< Rows of it that are here.
  std::int64_t cut_multiple = 1;  ///< `sp` may cut only at multiples of this (windows, merge units).
  double cost = 0;                ///< Work it makes, in any one unit; 0: rows.
  std::int64_t first = 0;         ///< Where its rows here begin inside the whole item (> 0 after a cut).
  friend bool operator==(const Segment&, const Segment&) = default;
};

/// The items of a packed tensor in the order of their rows.
using Segments = std::vector<Segment>;

[[nodiscard]] std::int64_t rows_of(std::span<const Segment> segments) noexcept;

/// The segments after `factor` neighbouring rows became one (a 2x2 merger: 4).
/// Fails with: kMismatch when a row count or a first row is no multiple of `factor`, naming the item.
[[nodiscard]] Result<Segments> merged(std::span<const Segment> segments, std::int64_t factor);

/// Rows `begin .. begin + rows` of what one source rank holds, as rows of a destination rank.
struct Slice {
  int source_rank = 0;
  std::int64_t source_begin = 0;  ///< Row in the source rank's packed tensor.
  std::int64_t begin = 0;         ///< Row in the destination rank's packed tensor.
  std::int64_t rows = 0;
  friend bool operator==(const Slice&, const Slice&) = default;
};

}  // namespace troupe
