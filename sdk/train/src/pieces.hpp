#pragma once

#include <cstdint>
#include <vector>

#include <troupe/layout/mesh.hpp>
#include "posix.hpp"

namespace troupe::detail {

/// Part of a tensor in a file, seen as [before, dim, after]: `ranges` of dim, in order, for each of before.
struct Cut {
  std::int64_t begin = 0;            ///< The tensor's first byte in the file.
  std::int64_t before = 1;
  std::int64_t dim = 1;
  std::int64_t after = 1;            ///< Bytes of one step along dim.
  std::vector<Share> ranges = {};    ///< None empty.
  std::vector<std::int64_t> shape;   ///< Of the part.

  /// Appends a range, joined to the last one where that goes on.
  void add(const Share& range);
};

/// Reads the part into `to`. Pieces go straight there; runs of small ones close together are fetched as one and picked apart,
/// through a buffer of 256 KiB at most. Returns the bytes fetched. Fails with: what File::read() fails with.
[[nodiscard]] Result<std::int64_t> read_cut(const File& file, const Cut& cut, char* to);

}  // namespace troupe::detail
