#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <troupe/base/units.hpp>
#include <troupe/layout/resources.hpp>

namespace troupe {
namespace {

using namespace troupe::literals;

Cluster cluster_of(const std::vector<int>& devices_by_node) {
  Cluster out;
  for (std::size_t n = 0; n < devices_by_node.size(); ++n) {
    Node node{.name = "n" + std::to_string(n), .cpus = 8, .memory_bytes = 64_GiB};
    for (int d = 0; d < devices_by_node[n]; ++d) node.devices.push_back({"gpu" + std::to_string(d), 80_GiB});
    out.nodes.push_back(std::move(node));
  }
  return out;
}

PlacementRequest asking(int ranks, double gpus, std::int64_t bytes = 0) {
  PlacementRequest out;
  out.name = "pool";
  out.ranks = ranks;
  out.per_rank = {.gpus = gpus, .gpu_memory_bytes = bytes};
  return out;
}

/// What a pool of one rank on node 0 holds.
Placement holder_on(int device, double share, std::int64_t bytes = 0) {
  const DeviceShare part{.node = 0, .device = device, .share = share, .memory_bytes = bytes};
  return {{RankPlacement{.node = 0, .devices = {part}, .resources = {.gpus = share, .gpu_memory_bytes = bytes}}}};
}

// RES-1, R1: concrete devices at once
TEST(Place, BindsEachRankToADevice) {
  const auto placed = or_throw(place(asking(2, 0.9), cluster_of({2}), {}));
  EXPECT_EQ(placed.ranks[0].devices[0].device, 0);
  EXPECT_EQ(placed.ranks[1].devices[0].device, 1);
  const auto rest = or_throw(place(asking(1, 0.1), cluster_of({2}), {placed}));
  EXPECT_EQ(rest.ranks[0].devices[0].device, 0);
}

// RES-2, R2: 80 actors of 0.18 on 2 x 8 devices: 5 to a device, so exactly 80 fit and 81 do not
TEST(Place, PacksFractionsPerDevice) {
  EXPECT_TRUE(place(asking(80, 0.18), cluster_of({8, 8}), {}));
  const auto over = place(asking(81, 0.18), cluster_of({8, 8}), {});
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().code, Errc::kInfeasible);
  EXPECT_NE(over.error().message.find("rank 80 of 81"), std::string::npos) << over.error().message;
}

TEST(Place, CountsMemoryBesideTheFraction) {
  EXPECT_TRUE(place(asking(2, 0.5, 40_GiB), cluster_of({1}), {}));
  EXPECT_EQ(place(asking(2, 0.5, 41_GiB), cluster_of({1}), {}).error().code, Errc::kInfeasible);
}

// RES-3
TEST(Place, TellsBusyFromImpossible) {
  const auto holder = or_throw(place(asking(1, 1), cluster_of({1}), {}));
  EXPECT_EQ(place(asking(1, 0.5), cluster_of({1}), {holder}).error().code, Errc::kResourcesBusy);
  EXPECT_EQ(place(asking(2, 1), cluster_of({1}), {holder}).error().code, Errc::kInfeasible);
  EXPECT_NE(place(asking(1, 2), cluster_of({1}), {}).error().message.find("asked 2"), std::string::npos);
}

TEST(Place, TakesWholeDevicesOfOneNode) {
  const auto placed = or_throw(place(asking(2, 3), cluster_of({4, 4}), {}));
  EXPECT_EQ(placed.ranks[0].devices.size(), 3U);
  EXPECT_NE(placed.ranks[0].node, placed.ranks[1].node);
}

TEST(Place, PutsRanksBesideThoseOfAnotherPool) {
  auto request = asking(4, 0.2);
  request.share_devices_with = or_throw(place(asking(2, 0.6), cluster_of({1, 1}), {}));
  const auto placed = or_throw(place(request, cluster_of({1, 1}), {*request.share_devices_with}));
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(placed.ranks[static_cast<std::size_t>(rank)].node, request.share_devices_with->ranks[static_cast<std::size_t>(rank / 2)].node);
}

std::string refusal(const PlacementRequest& request, const Cluster& cluster, const std::vector<Placement>& taken = {}) {
  const auto placed = place(request, cluster, taken);
  return placed ? "placed" : placed.error().describe();
}

// RES-3, R2: resource, node, asked and free, per device, of the node that comes closest
TEST(Place, NamesTheScarcestResourceOfTheClosestNode) {
  const Cluster cluster = cluster_of({0, 2, 1});
  EXPECT_EQ(refusal(asking(1, 3), cluster),
            "Infeasible: pool pool, rank 0 of 1: gpus: asked 3, free on node n1: device 0: 1; device 1: 1; even the empty "
            "cluster can't hold it: ask for less");
  EXPECT_EQ(refusal(asking(2, 0.4), cluster_of({2}), {holder_on(0, 0.7), holder_on(1, 0.7)}),
            "ResourcesBusy: pool pool, rank 0 of 2: gpus: asked 0.4, free on node n0: device 0: 0.3; device 1: 0.3; others "
            "hold it now: close a pool or ask for less");
  EXPECT_EQ(refusal(asking(2, 0.2, 20_GiB), cluster_of({1}), {holder_on(0, 0.1, 41_GiB)}),
            "ResourcesBusy: pool pool, rank 1 of 2: gpus: asked 0.2 with 20.00 GiB (21474836480 bytes) each, free on node n0: "
            "device 0: 0.7 and 19.00 GiB (20401094656 bytes); others hold it now: close a pool or ask for less");
  auto hungry = asking(1, 0.5);
  hungry.per_rank.cpus = 9;
  EXPECT_NE(refusal(hungry, cluster_of({1})).find("rank 0 of 1: cpus: asked 9, free 8 on node n0; even the empty"), std::string::npos);
  hungry.per_rank = {.host_memory_bytes = 65_GiB};
  EXPECT_NE(refusal(hungry, cluster_of({1})).find("host memory: asked 65.00 GiB (69793218560 bytes), free 64.00 GiB"), std::string::npos);
  EXPECT_EQ(refusal(asking(1, 0), {}), "Infeasible: pool pool, rank 0 of 1: the cluster has no node; even the empty cluster can't hold it: ask for less");
}

// RES-3: beside a pool that leaves too little there is never room, whoever else goes
TEST(Place, CallsAShareThatTheOtherPoolLeavesNoRoomForInfeasible) {
  auto request = asking(1, 0.5);
  request.share_devices_with = holder_on(0, 0.6);
  EXPECT_EQ(refusal(request, cluster_of({2}), {*request.share_devices_with}),
            "Infeasible: pool pool, rank 0 of 1: gpus: asked 0.5, free on node n0: device 0: 0.4 beside the pool it shares "
            "devices with; nobody else is in the way: ask for less here or in that pool");
  request.per_rank.gpus = 0.4;
  EXPECT_EQ(place(request, cluster_of({2}), {*request.share_devices_with, holder_on(0, 0.2)}).error().code, Errc::kResourcesBusy);
}

TEST(Place, RefusesPlacementsOfAnotherCluster) {
  auto request = asking(1, 0.5);
  request.share_devices_with = Placement{};
  EXPECT_EQ(refusal(request, cluster_of({1})), "InvalidArgument: pool pool: share_devices_with has no ranks; expected a placed pool");
  request.share_devices_with = holder_on(3, 0.1);
  EXPECT_EQ(refusal(request, cluster_of({1})),
            "InvalidArgument: pool pool: share_devices_with, rank 0: device 3 of 1 on node n0; was it made for another cluster?");
  Placement elsewhere = holder_on(0, 0.1);
  elsewhere.ranks[0].node = 7;
  EXPECT_EQ(refusal(asking(1, 1), cluster_of({1}), {elsewhere}),
            "InvalidArgument: pool pool: taken placement 0, rank 0: node 7 of 1; was it made for another cluster?");
}

// bad input: numbers past every integer and every cluster are answers, not overflows
TEST(Place, AnswersNumbersPastEveryCluster) {
  EXPECT_EQ(place(asking(1, 1e300), cluster_of({2}), {}).error().code, Errc::kInfeasible);
  EXPECT_EQ(place(asking(std::numeric_limits<int>::max(), 0), cluster_of({2}), {}).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(place(asking(1, 1, std::numeric_limits<std::int64_t>::max()), cluster_of({2}), {}).error().code, Errc::kInfeasible);
  auto negative = asking(1, 0.5, -3);
  EXPECT_EQ(refusal(negative, cluster_of({1})), "InvalidArgument: pool pool: gpu_memory_bytes must be >= 0, got -3");
  negative.per_rank = {.host_memory_bytes = -3};
  EXPECT_EQ(place(negative, cluster_of({1}), {}).error().code, Errc::kInvalidArgument);
  negative.per_rank = {.cpus = std::numeric_limits<double>::quiet_NaN()};
  EXPECT_EQ(place(negative, cluster_of({1}), {}).error().code, Errc::kInvalidArgument);
  negative.per_rank = {.custom = {{"licence", -1}}};
  EXPECT_EQ(place(negative, cluster_of({1}), {}).error().code, Errc::kInvalidArgument);
}

TEST(Place, RefusesRequestsThatMakeNoSense) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double gpus : {-1.0, 1.5, nan, std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(place(asking(1, gpus), cluster_of({2}), {}).error().code, Errc::kInvalidArgument) << gpus;
  }
  EXPECT_EQ(place(asking(0, 1), cluster_of({2}), {}).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(place(asking(1, 0, 1_GiB), cluster_of({2}), {}).error().code, Errc::kInvalidArgument);
  auto custom = asking(1, 0);
  custom.per_rank.custom = {{"licence", 2}};
  EXPECT_NE(place(custom, cluster_of({1}), {}).error().message.find("licence: asked 2, free 0"), std::string::npos);
}

/// Whether `ranks` equal shares fit, counted per device: equal requests make greedy packing exact.
bool fits_by_count(int ranks, int tenths, const std::vector<int>& used_tenths) {
  int room = 0;
  for (const int used : used_tenths) room += (10 - used) / tenths;
  return room >= ranks;
}

// RES-1, RES-2: never over-commits, and refuses only what can't fit
TEST(Place, NeverOverCommitsAndFindsWhatFits) {
  EXPECT_TRUE(rc::check([] {
    const int devices = *rc::gen::inRange(1, 5);
    const Cluster cluster = cluster_of({devices});
    std::vector<Placement> taken;
    std::vector<int> used(static_cast<std::size_t>(devices), 0);
    for (int round = 0; round < 6; ++round) {
      const int tenths = *rc::gen::inRange(1, 11);
      const int ranks = *rc::gen::inRange(1, 6);
      const auto placed = place(asking(ranks, tenths / 10.0), cluster, taken);
      RC_ASSERT(placed.has_value() == fits_by_count(ranks, tenths, used));
      if (!placed) continue;
      for (const auto& rank : placed->ranks) used[static_cast<std::size_t>(rank.devices[0].device)] += tenths;
      for (const int sum : used) RC_ASSERT(sum <= 10);
      taken.push_back(*placed);
    }
  }));
}

}  // namespace
}  // namespace troupe
