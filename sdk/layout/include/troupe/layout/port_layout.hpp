#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <troupe/layout/mesh.hpp>
#include <troupe/layout/segments.hpp>

namespace troupe {

/// How the gradient of a replicated input arrives back from its replicas (EDG-2). No default: a wrong
/// guess is a gradient summed twice, or one that is only a part.
enum class Grad : std::uint8_t {
  kNone,        ///< No gradient: integers, or data.
  kPartial,     ///< Each replica holds a part; the parts are summed in rank order.
  kReplicated,  ///< Each replica holds the whole; one is taken (debug builds compare them bit for bit).
};

/// How the elements that flow into a port are laid out over the mesh of its stage.
/// Samples are divided over `sample_axes`; the rows of each sample's items then over `row_axes`;
/// every other axis holds replicas.
struct PortLayout {
  enum class Assign : std::uint8_t {
    kInOrder,  ///< Samples in contiguous blocks by share_of(): equal counts.
    kByCost,   ///< Longest-processing-time over the items' costs, deterministic.
  };
  std::vector<std::string> sample_axes = {};
  std::vector<std::string> row_axes = {};
  Assign assign = Assign::kInOrder;
  Grad grad = Grad::kNone;
  friend bool operator==(const PortLayout&, const PortLayout&) = default;
};

/// Everything on every rank. On a stage with a data-parallel axis > 1 this trains each sample several
/// times, so graph.check() refuses it there.
[[nodiscard]] PortLayout replicate(Grad grad = Grad::kNone);

/// Samples divided over `axis`, in order; replicas on the others.
[[nodiscard]] PortLayout by_sample(std::string axis, Grad grad = Grad::kNone);

/// Rows of packed items divided over `axis` at their cut multiples, items in order.
[[nodiscard]] PortLayout shard_rows(std::string axis, Grad grad = Grad::kNone);

/// Samples over `sample_axis` so that the cost of their items is even; rows then over `row_axis`.
[[nodiscard]] PortLayout balance(std::string sample_axis, std::string row_axis, Grad grad = Grad::kNone);

/// What each rank of `mesh` holds of `segments` under `layout`: per rank its pieces in order
/// (Segment::first and ::rows say which part of an item).
/// Pure: the same input gives the same answer on every rank and in every process.
/// Fails with: kInvalidArgument when an axis is used twice, the mesh is malformed or a segment is (negative
/// rows, cut_multiple < 1, duplicate id, cost not finite, more than 2^40 rows in all), naming it. An axis that
/// the mesh lacks has size 1.
[[nodiscard]] Result<std::vector<Segments>> distribute(std::span<const Segment> segments, std::int64_t samples,
                                                       const PortLayout& layout, const Mesh& mesh);

/// Which samples of a batch of `samples` each rank of `mesh` holds under `layout`, ascending.
[[nodiscard]] Result<std::vector<std::vector<std::int64_t>>> distribute_samples(
    std::span<const Segment> segments, std::int64_t samples, const PortLayout& layout, const Mesh& mesh);

/// Where every destination rank takes its rows from: each byte once (EDG-1). `source[r]` and
/// `destination[r]` say what rank r holds. Where replicas of the source hold the same rows,
/// destination rank d prefers replica d modulo their number, so that readers spread.
/// Fails with: kMismatch when a destination needs a row that no source holds, naming item and rows;
/// kInvalidArgument for a piece with negative first or rows.
[[nodiscard]] Result<std::vector<std::vector<Slice>>> reshard(std::span<const Segments> source,
                                                              std::span<const Segments> destination);

}  // namespace troupe
