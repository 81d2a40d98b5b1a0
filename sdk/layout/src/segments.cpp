#include <troupe/layout/segments.hpp>

#include <numeric>

#include <troupe/base/text.hpp>

namespace troupe {

std::int64_t rows_of(std::span<const Segment> segments) noexcept {
  std::int64_t rows = 0;
  for (const Segment& segment : segments) rows += segment.rows;
  return rows;
}

Result<Segments> merged(std::span<const Segment> segments, std::int64_t factor) {
  if (factor < 1) return fail(Errc::kInvalidArgument, text("merged(): the factor must be >= 1, got ", factor));
  Segments out(segments.begin(), segments.end());
  for (Segment& segment : out) {
    if (segment.rows % factor != 0 || segment.first % factor != 0) {
      return fail(Errc::kMismatch, text("item ", segment.id, ": ", segment.rows, " rows from row ", segment.first,
                                        " do not merge by ", factor, "; its cut_multiple must be a multiple of that"));
    }
    segment.rows /= factor;
    segment.first /= factor;
    // a cut must stay a multiple of both: windows of 6 rows, merged by 4, may be cut at 12 rows, 3 merged ones
    segment.cut_multiple /= std::gcd(segment.cut_multiple, factor);
  }
  return out;
}

}  // namespace troupe
