#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <troupe/layout/port_layout.hpp>

namespace troupe {
namespace {

using Rows = std::vector<std::int64_t>;

/// What each rank of a row axis holds of items of one sample each.
std::vector<Segments> over_rows(const Segments& items, int ranks) {
  return or_throw(distribute(items, static_cast<std::int64_t>(items.size()), shard_rows("sp"), Mesh{{"sp", ranks}}));
}

Rows rows_by_rank(const std::vector<Segments>& held) {
  Rows out;
  for (const Segments& pieces : held) out.push_back(rows_of(pieces));
  return out;
}

Segments items_of(const Rows& rows, std::int64_t cut_multiple) {
  Segments out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto number = static_cast<std::int64_t>(i);
    out.push_back({.id = 100 - number, .sample = number, .rows = rows[i], .cut_multiple = cut_multiple});
  }
  return out;
}

// case 8: fewer rows than ranks, one more, one less, primes, nothing at all
TEST(RowCuts, AreAsEvenAsTheMultiplesPermit) {
  struct Case {
    Rows items;
    std::int64_t multiple;
    Rows expected;
  };
  const std::vector<Case> cases{
      {{1}, 1, {0, 0, 1, 0}},  // the ideal cuts 0.25, 0.5, 0.75: of two places as near the lower
      {{7}, 1, {2, 1, 2, 2}},       {{3}, 1, {1, 0, 1, 1}},    {{4}, 1, {1, 1, 1, 1}},
      {{5}, 1, {1, 1, 2, 1}},       {{13}, 1, {3, 3, 4, 3}},   {{16}, 4, {4, 4, 4, 4}},
      {{15}, 4, {4, 4, 4, 3}},      {{8}, 8, {0, 0, 8, 0}},    {{6, 6}, 6, {0, 6, 0, 6}},
      {{3, 3, 3, 3}, 4, {3, 3, 3, 3}}, {{10, 1, 1}, 4, {4, 0, 4, 4}}, {{0, 0}, 1, {0, 0, 0, 0}}, {{}, 1, {0, 0, 0, 0}},
  };
  for (const Case& c : cases) EXPECT_EQ(rows_by_rank(over_rows(items_of(c.items, c.multiple), 4)), c.expected) << ::testing::PrintToString(c.items);
}

/// Every place at which the sequence may be cut, found row by row.
Rows all_cut_places(const Segments& items) {
  Rows out{0};
  std::int64_t at = 0;
  for (const Segment& item : items) {
    for (std::int64_t row = 1; row <= item.rows; ++row) {
      if ((item.first + row) % item.cut_multiple == 0 || row == item.rows) out.push_back(at + row);
    }
    at += item.rows;
  }
  return out;
}

// case 8: against a search over all places; also for items that were cut before (first > 0)
TEST(RowCuts, FallAtThePlaceNearestToEven) {
  EXPECT_TRUE(rc::check([] {
    Segments items = items_of(*rc::gen::container<Rows>(rc::gen::inRange<std::int64_t>(0, 25)), 1);
    for (Segment& item : items) {
      item.cut_multiple = *rc::gen::inRange<std::int64_t>(1, 9);
      item.first = *rc::gen::inRange<std::int64_t>(0, 12);
    }
    const int ranks = *rc::gen::inRange(1, 8);
    const Rows got = rows_by_rank(over_rows(items, ranks));
    const Rows places = all_cut_places(items);
    std::int64_t begin = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const std::int64_t ideal = rows_of(items) * (rank + 1);
      const auto distance = [&](std::int64_t place) { return std::abs(place * ranks - ideal); };
      const std::int64_t nearest = *std::ranges::min_element(places, {}, distance);
      RC_ASSERT(begin + got[static_cast<std::size_t>(rank)] == nearest);
      begin = nearest;
    }
  }));
}

// NUM-6: a batch's rows are numbers, not work
TEST(RowCuts, CostNothingPerRow) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  EXPECT_EQ(rows_by_rank(over_rows(items_of({kMost}, 4), 3)), (Rows{366503875924, 366503875928, 366503875924}));
  const auto over = distribute(items_of({kMost, 1}, 1), 2, shard_rows("sp"), Mesh{{"sp", 2}});
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().code, Errc::kInvalidArgument);
  EXPECT_NE(over.error().message.find("item 99: its 1 rows take the batch past"), std::string::npos) << over.error().message;
  const Segments vast{{.id = 0, .rows = 3, .cut_multiple = std::numeric_limits<std::int64_t>::max()}};
  EXPECT_EQ(rows_by_rank(over_rows(vast, 2)), (Rows{0, 3}));
}

Mesh any_mesh() {
  return Mesh{{"dp", *rc::gen::inRange(1, 4)}, {"sp", *rc::gen::inRange(1, 5)}, {"tp", *rc::gen::inRange(1, 3)}};
}

PortLayout any_layout() {
  auto layout = *rc::gen::element(replicate(), by_sample("dp"), shard_rows("sp"), balance("dp", "sp"), by_sample("absent"),
                                  PortLayout{.sample_axes = {"tp", "dp"}, .row_axes = {"sp"}}, PortLayout{.row_axes = {"sp", "tp"}});
  if (*rc::gen::arbitrary<bool>()) layout.assign = PortLayout::Assign::kByCost;
  return layout;
}

// EDG-3, case 3: an item without rows is somewhere exactly once too, and stays in the order of the batch
TEST(Distribute, KeepsItemsWithoutRowsAndTheOrderOfAll) {
  EXPECT_TRUE(rc::check([] {
    Segments all = items_of(*rc::gen::container<Rows>(rc::gen::inRange<std::int64_t>(0, 4)), 1);
    const auto samples = static_cast<std::int64_t>(all.size());
    const Mesh mesh = any_mesh();
    const PortLayout layout = any_layout();
    const auto held = or_throw(distribute(all, samples, layout, mesh));
    const auto mine = or_throw(distribute_samples(all, samples, layout, mesh));
    const int replicas = mesh.size() / (mesh.size_of(layout.sample_axes) * mesh.size_of(layout.row_axes));
    std::map<std::int64_t, int> empty_items;
    for (std::size_t rank = 0; rank < held.size(); ++rank) {
      RC_ASSERT(std::ranges::is_sorted(mine[rank]));
      RC_ASSERT(std::ranges::is_sorted(held[rank], std::greater{}, &Segment::id));  // ids descend in items_of
      for (const Segment& piece : held[rank]) {
        RC_ASSERT(std::ranges::binary_search(mine[rank], piece.sample));
        if (piece.rows == 0) ++empty_items[piece.id];
      }
    }
    for (const Segment& item : all) {
      if (item.rows == 0) RC_ASSERT(empty_items[item.id] == replicas);
    }
  }));
}

TEST(Distribute, GivesEachSampleToOneShard) {
  EXPECT_TRUE(rc::check([] {
    const std::int64_t samples = *rc::gen::inRange<std::int64_t>(0, 9);
    const Mesh mesh = any_mesh();
    const PortLayout layout = any_layout();
    const auto mine = or_throw(distribute_samples({}, samples, layout, mesh));
    const int copies = mesh.size() / mesh.size_of(layout.sample_axes);
    std::map<std::int64_t, int> counts;
    std::size_t least = static_cast<std::size_t>(samples), most = 0;
    for (const auto& list : mine) {
      for (const std::int64_t sample : list) ++counts[sample];
      least = std::min(least, list.size());
      most = std::max(most, list.size());
    }
    RC_ASSERT(static_cast<std::int64_t>(counts.size()) == samples);
    for (const auto& [sample, count] : counts) RC_ASSERT(count == copies);
    RC_ASSERT(most - least <= 1U);  // also by cost: samples without items are spread, not heaped on shard 0
  }));
}

using Costs = std::vector<double>;

double makespan(const Costs& costs, int shards) {
  Segments items;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const auto number = static_cast<std::int64_t>(i);
    items.push_back({.id = number, .sample = number, .rows = 1, .cost = costs[i]});
  }
  const auto mine = or_throw(distribute_samples(items, static_cast<std::int64_t>(costs.size()), balance("dp", "sp"), Mesh{{"dp", shards}}));
  double most = 0;
  for (const auto& list : mine) {
    double load = 0;
    for (const std::int64_t sample : list) load += costs[static_cast<std::size_t>(sample)];
    most = std::max(most, load);
  }
  return most;
}

/// The least makespan there is, by trying everything.
double best_makespan(const Costs& costs, std::size_t next, Costs& loads) {
  if (next == costs.size()) return *std::ranges::max_element(loads);
  double best = std::numeric_limits<double>::infinity();
  for (double& load : loads) {
    load += costs[next];
    best = std::min(best, best_makespan(costs, next + 1, loads));
    load -= costs[next];
  }
  return best;
}

// case 19: Graham's bound for longest-processing-time, 4/3 - 1/(3m) of the best there is
TEST(Balance, KeepsTheBoundOfLongestProcessingTime) {
  EXPECT_TRUE(rc::check([] {
    const int shards = *rc::gen::inRange(1, 4);
    Costs costs;
    for (const int cost : *rc::gen::resize(7, rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 30)))) costs.push_back(cost);
    Costs loads(static_cast<std::size_t>(shards), 0.0);
    const double best = costs.empty() ? 0 : best_makespan(costs, 0, loads);
    RC_ASSERT(makespan(costs, shards) <= best * (4.0 / 3 - 1.0 / (3 * shards)) + 1e-9);
  }));
}

// case 19: with the batches of practice (patches of pictures, 16 and more a rank) within 1.1 of even
TEST(Balance, IsWithinATenthOfEvenForManyPictures) {
  EXPECT_TRUE(rc::check([] {
    const int shards = *rc::gen::inRange(2, 9);
    Costs costs;
    for (int i = 0; i < 16 * shards; ++i) costs.push_back(*rc::gen::inRange(16, 1025));
    const double even = std::accumulate(costs.begin(), costs.end(), 0.0) / shards;
    const double bound = std::max(even, *std::ranges::max_element(costs));
    RC_ASSERT(makespan(costs, shards) <= 1.1 * bound);
  }));
}

// case 19: a cost of 0 means the rows; several items of a sample add up; ties go to the lower index
TEST(Balance, CountsTheItemsOfASample) {
  const Segments items{{.id = 1, .sample = 0, .rows = 4},
                       {.id = 2, .sample = 1, .rows = 1, .cost = 3},
                       {.id = 3, .sample = 1, .rows = 1, .cost = 3},
                       {.id = 4, .sample = 2, .rows = 3}};
  const auto mine = or_throw(distribute_samples(items, 3, balance("dp", "sp"), Mesh{{"dp", 2}}));
  EXPECT_EQ(mine[0], (Rows{1}));
  EXPECT_EQ(mine[1], (Rows{0, 2}));
  const Segments equal{{.id = 1, .sample = 0, .rows = 2}, {.id = 2, .sample = 1, .rows = 2}};
  EXPECT_EQ(or_throw(distribute_samples(equal, 2, balance("dp", "sp"), Mesh{{"dp", 2}})), (std::vector<Rows>{{0}, {1}}));
}

TEST(Balance, SplitsTheCostOfACutItemByRows) {
  const Segments items{{.id = 1, .rows = 8, .cost = 4}};
  const auto held = or_throw(distribute(items, 1, balance("dp", "sp"), Mesh{{"sp", 4}}));
  for (const Segments& pieces : held) EXPECT_EQ(pieces.front().cost, 1.0);
}

TEST(DistributeRefuses, WhatIsMalformedByName) {
  const auto message = [](const Segments& items, std::int64_t samples, const Mesh& mesh) {
    const auto held = distribute(items, samples, balance("dp", "sp"), mesh);
    const auto mine = distribute_samples(items, samples, balance("dp", "sp"), mesh);
    if (held || mine) return std::string("accepted");
    EXPECT_EQ(held.error().code, Errc::kInvalidArgument);
    EXPECT_EQ(held.error().message, mine.error().message);
    return held.error().message;
  };
  const Mesh two{{"dp", 2}};
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(message({}, -1, two), "a batch has >= 0 samples, got -1");
  EXPECT_EQ(message({}, 1, Mesh{{"dp", 0}}), "mesh dp=0: axis dp must have size >= 1, got 0");
  EXPECT_EQ(message({{.id = 7, .sample = 0}}, 0, two), "item 7: sample must be >= 0 and below the batch's 0, got 0");
  EXPECT_EQ(message({{.id = 7, .sample = -1}}, 1, two), "item 7: sample must be >= 0 and below the batch's 1, got -1");
  EXPECT_EQ(message({{.id = 7, .rows = -1}}, 1, two), "item 7: rows must be >= 0, got -1");
  EXPECT_EQ(message({{.id = 7, .cut_multiple = 0}}, 1, two), "item 7: cut_multiple must be >= 1, got 0");
  EXPECT_EQ(message({{.id = 7, .cost = infinity}}, 1, two), "item 7: cost must be a number >= 0, got inf");
  EXPECT_NE(message({{.id = 7, .cost = nan}}, 1, two), "accepted");
  EXPECT_NE(message({{.id = 7, .first = -1}}, 1, two), "accepted");
}

// cuts of the merged rows are cuts of the rows before, else a window would be cut
TEST(Merged, KeepsTheCutsOfTheItem) {
  for (std::int64_t cut = 1; cut <= 12; ++cut) {
    for (std::int64_t factor = 1; factor <= 12; ++factor) {
      const Segments item{{.id = 1, .rows = cut * factor, .cut_multiple = cut}};
      const auto after = or_throw(merged(item, factor)).front();
      EXPECT_EQ(after.cut_multiple * factor, std::lcm(cut, factor)) << cut << " " << factor;
      EXPECT_EQ(after.rows, cut);
    }
  }
  EXPECT_EQ(merged(Segments{{.id = 3, .rows = 6}}, 4).error().message,
            "item 3: 6 rows from row 0 do not merge by 4; its cut_multiple must be a multiple of that");
  EXPECT_EQ(merged({}, 0).error().code, Errc::kInvalidArgument);
}

}  // namespace
}  // namespace troupe
