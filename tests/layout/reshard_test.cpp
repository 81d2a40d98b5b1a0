#include <map>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <troupe/layout/port_layout.hpp>

namespace troupe {
namespace {

Segments items(const std::vector<std::int64_t>& rows, std::int64_t samples, std::int64_t multiple = 1) {
  Segments out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    out.push_back({.id = static_cast<std::int64_t>(i) * 3, .sample = static_cast<std::int64_t>(i) % samples, .rows = rows[i], .cut_multiple = multiple});
  }
  return out;
}

Segments random_items(std::int64_t samples, std::int64_t multiple) {
  return items(*rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 20)), samples, multiple);
}

Mesh random_mesh() { return Mesh{{"dp", *rc::gen::inRange(1, 4)}, {"sp", *rc::gen::inRange(1, 5)}, {"tp", *rc::gen::inRange(1, 3)}}; }

PortLayout random_layout() {
  return *rc::gen::element(replicate(), by_sample("dp"), shard_rows("sp"), balance("dp", "sp"));
}

/// Rows of each item by (item, row): how often some replica set holds it.
std::map<std::pair<std::int64_t, std::int64_t>, int> holders(const std::vector<Segments>& held) {
  std::map<std::pair<std::int64_t, std::int64_t>, int> out;
  for (const auto& pieces : held) {
    for (const auto& piece : pieces) {
      for (std::int64_t row = 0; row < piece.rows; ++row) ++out[{piece.id, piece.first + row}];
    }
  }
  return out;
}

TEST(Distribute, GivesEachRowToEachReplicaSetOnce) {
  EXPECT_TRUE(rc::check([] {
    const std::int64_t samples = *rc::gen::inRange<std::int64_t>(1, 6);
    const std::int64_t multiple = *rc::gen::inRange<std::int64_t>(1, 5);
    const Segments all = random_items(samples, multiple);
    const Mesh mesh = random_mesh();
    const PortLayout layout = random_layout();
    const auto held = or_throw(distribute(all, samples, layout, mesh));
    const int replicas = mesh.size() / (mesh.size_of(layout.sample_axes) * mesh.size_of(layout.row_axes));
    const auto counts = holders(held);
    RC_ASSERT(static_cast<std::int64_t>(counts.size()) == rows_of(all));
    for (const auto& [row, count] : counts) RC_ASSERT(count == replicas);
    for (const auto& pieces : held) {
      for (const auto& piece : pieces) RC_ASSERT(piece.first % multiple == 0);  // cut where allowed only
    }
  }));
}

// EDG-1: each destination row comes from exactly one place, and the data arrives
TEST(Reshard, BringsEachRowOnceAndBack) {
  EXPECT_TRUE(rc::check([] {
    const std::int64_t samples = *rc::gen::inRange<std::int64_t>(1, 6);
    const Segments all = random_items(samples, 2);
    const auto source = or_throw(distribute(all, samples, random_layout(), random_mesh()));
    const auto destination = or_throw(distribute(all, samples, random_layout(), random_mesh()));
    const auto slices = or_throw(reshard(source, destination));
    for (std::size_t rank = 0; rank < destination.size(); ++rank) {
      std::vector<std::pair<std::int64_t, std::int64_t>> expected, got;
      for (const auto& piece : destination[rank]) {
        for (std::int64_t row = 0; row < piece.rows; ++row) expected.push_back({piece.id, piece.first + row});
      }
      for (const Slice& slice : slices[rank]) {
        RC_ASSERT(slice.begin == static_cast<std::int64_t>(got.size()));
        std::vector<std::pair<std::int64_t, std::int64_t>> there;
        for (const auto& piece : source[static_cast<std::size_t>(slice.source_rank)]) {
          for (std::int64_t row = 0; row < piece.rows; ++row) there.push_back({piece.id, piece.first + row});
        }
        for (std::int64_t row = 0; row < slice.rows; ++row) got.push_back(there.at(static_cast<std::size_t>(slice.source_begin + row)));
      }
      RC_ASSERT(got == expected);
    }
  }));
}

TEST(Reshard, SpreadsReadersOverReplicas) {
  const Segments all = items({8}, 1);
  const std::vector<Segments> source(3, all);
  const std::vector<Segments> destination(3, all);
  const auto slices = or_throw(reshard(source, destination));
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(slices[static_cast<std::size_t>(rank)], (std::vector<Slice>{{rank, 0, 0, 8}}));
}

TEST(Reshard, NamesARowThatNobodyHolds) {
  const std::vector<Segments> source{{{.id = 5, .rows = 3}}};
  const std::vector<Segments> destination{{{.id = 5, .rows = 4}}};
  const auto missing = reshard(source, destination);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Errc::kMismatch);
  EXPECT_NE(missing.error().message.find("item 5: destination rank 0 needs rows 0 .. 4, but no source rank holds row 3"), std::string::npos) << missing.error().message;
}

// case 19: costs, not counts
TEST(Distribute, BalancesByCost) {
  Segments all = items({60, 10, 10, 10, 10, 10}, 6);
  const auto shares = or_throw(distribute_samples(all, 6, balance("dp", "sp"), {{"dp", 2}}));
  EXPECT_EQ(shares[0], (std::vector<std::int64_t>{0}));
  EXPECT_EQ(shares[1], (std::vector<std::int64_t>{1, 2, 3, 4, 5}));
}

TEST(Distribute, RefusesMalformedSegments) {
  const Mesh mesh{{"dp", 2}};
  const auto code = [&](Segment segment) { return distribute({{segment}}, 2, by_sample("dp"), mesh).error().code; };
  EXPECT_EQ(code({.id = 0, .sample = 2, .rows = 1}), Errc::kInvalidArgument);
  EXPECT_EQ(code({.id = 0, .sample = 0, .rows = -1}), Errc::kInvalidArgument);
  EXPECT_EQ(code({.id = 0, .sample = 0, .rows = 1, .cut_multiple = 0}), Errc::kInvalidArgument);
  const Segments twice{{.id = 1, .rows = 1}, {.id = 1, .rows = 1}};
  EXPECT_EQ(distribute(twice, 1, replicate(), mesh).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(distribute({}, 1, balance("dp", "dp"), mesh).error().code, Errc::kInvalidArgument);
}

TEST(Segments, MergeByAFactorOfTheirCuts) {
  const Segments cut{{.id = 1, .rows = 8, .cut_multiple = 4, .first = 4}};
  EXPECT_EQ(or_throw(merged(cut, 4)), (Segments{{.id = 1, .rows = 2, .cut_multiple = 1, .first = 1}}));
  EXPECT_EQ(merged(cut, 3).error().code, Errc::kMismatch);
}

}  // namespace
}  // namespace troupe
