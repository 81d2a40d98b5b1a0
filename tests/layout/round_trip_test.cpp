#include <map>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <troupe/layout/port_layout.hpp>

namespace troupe {
namespace {

/// The rows of each rank, as numbers that are unique in the batch.
using Data = std::vector<std::vector<std::int64_t>>;

Data data_of(const std::vector<Segments>& held) {
  Data out;
  for (const Segments& pieces : held) {
    auto& rows = out.emplace_back();
    for (const Segment& piece : pieces) {
      for (std::int64_t row = 0; row < piece.rows; ++row) rows.push_back(piece.id * 1000 + piece.first + row);
    }
  }
  return out;
}

/// What an edge does with slices. `read` counts how often each row of each source was taken.
Data moved(const Data& source, const std::vector<std::vector<Slice>>& slices, std::vector<std::vector<int>>& read) {
  Data out;
  for (const auto& list : slices) {
    auto& rows = out.emplace_back();
    for (const Slice& slice : list) {
      EXPECT_EQ(slice.begin, static_cast<std::int64_t>(rows.size()));
      for (std::int64_t row = slice.source_begin; row < slice.source_begin + slice.rows; ++row) {
        rows.push_back(source.at(static_cast<std::size_t>(slice.source_rank)).at(static_cast<std::size_t>(row)));
        ++read[static_cast<std::size_t>(slice.source_rank)][static_cast<std::size_t>(row)];
      }
    }
  }
  return out;
}

std::vector<std::vector<int>> unread(const Data& data) {
  std::vector<std::vector<int>> out;
  for (const auto& rows : data) out.emplace_back(rows.size(), 0);
  return out;
}

Segments pictures(const std::vector<std::int64_t>& rows, std::int64_t samples) {
  Segments out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto number = static_cast<std::int64_t>(i);
    out.push_back({.id = number, .sample = number * 5 % samples, .rows = rows[i], .cut_multiple = 1 + number % 3});
  }
  return out;
}

std::vector<PortLayout> layouts() {
  return {replicate(), by_sample("x"), shard_rows("x"), balance("x", "y"), PortLayout{.sample_axes = {"y"}, .row_axes = {"x"}}};
}

// EDG-1, case 19: M:N in {1,2,3,4}^2, every pair of layouts: there and back is the identity on the data
TEST(RoundTrip, IsTheIdentityForEverySizeAndLayout) {
  for (const std::vector<std::int64_t>& rows : {std::vector<std::int64_t>{}, {0, 0}, {1}, {5, 0, 7, 1, 12, 3}, {2, 2, 2, 2, 2, 2, 2}}) {
    const Segments items = pictures(rows, 3);
    for (int m = 1; m <= 4; ++m) {
      for (int n = 1; n <= 4; ++n) {
        for (const PortLayout& from : layouts()) {
          for (const PortLayout& to : layouts()) {
            const auto a = or_throw(distribute(items, 3, from, Mesh{{"x", m}}));
            const auto b = or_throw(distribute(items, 3, to, Mesh{{"x", n}}));
            auto read = unread(data_of(a));
            const Data there = moved(data_of(a), or_throw(reshard(a, b)), read);
            EXPECT_EQ(there, data_of(b)) << m << " to " << n;
            auto back = unread(there);
            EXPECT_EQ(moved(there, or_throw(reshard(b, a)), back), data_of(a)) << m << " to " << n;
          }
        }
      }
    }
  }
}

// EDG-1: a destination that divides the batch takes each row of it once from the replicas together, and readers
// of the same row use all replicas before they use one twice
TEST(RoundTrip, ReadsReplicasEvenly) {
  EXPECT_TRUE(rc::check([] {
    const int replicas = *rc::gen::inRange(1, 5);
    const int readers = *rc::gen::inRange(1, 9);
    const Segments items = pictures(*rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(1, 9)), 2);
    const auto a = or_throw(distribute(items, 2, shard_rows("sp"), Mesh{{"sp", 2}, {"tp", replicas}}));
    const auto b = or_throw(distribute(items, 2, replicate(), Mesh{{"tp", readers}}));
    auto read = unread(data_of(a));
    (void)moved(data_of(a), or_throw(reshard(a, b)), read);
    for (const auto& rows : read) {
      for (const int count : rows) RC_ASSERT(count == readers / replicas || count == readers / replicas + 1);
    }
  }));
}

TEST(RoundTrip, RefusesPiecesThatMakeNoSense) {
  const std::vector<Segments> good{{{.id = 5, .rows = 3}}};
  const std::vector<Segments> bad{{{.id = 4, .rows = 5}, {.id = 5, .rows = -2}}};
  EXPECT_EQ(reshard(bad, good).error().message, "item 5 on source rank 0: first and rows must be >= 0, got 0 and -2");
  EXPECT_EQ(reshard(good, bad).error().code, Errc::kInvalidArgument);
}

}  // namespace
}  // namespace troupe
