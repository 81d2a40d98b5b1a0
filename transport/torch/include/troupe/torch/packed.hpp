#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/layout/segments.hpp>

namespace troupe {

/// Items of different length (pictures, sounds) packed row after row, and what they are: host integers.
/// A module returns `rows` and `segments`; an edge fills in the rest for the rank it delivers to.
struct Packed {
  at::Tensor rows;                      ///< [rows, ...]; [0, ...] when there are no items, never undefined.
  Segments segments;                    ///< The items, or pieces of items, in the order of the rows.
  /// The samples of the micro-batch that this rank was given, ascending: row i of its by_sample() tensors is
  /// sample samples[i]; Segment::sample counts in the micro-batch.
  std::vector<std::int64_t> samples = {};
  /// What each member of the row axis (sp) holds, by coordinate: host integers for Ulysses.
  std::vector<Segments> shards = {};

  static auto troupe_fields(auto& self) { return std::tie(self.rows, self.segments, self.samples, self.shards); }
};

}  // namespace troupe
