#include <algorithm>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <troupe/layout/resources.hpp>

namespace troupe {
namespace {

/// A cluster in whole numbers, so that the search has no rounding: tenths of a device, bytes, cpus.
struct Room {
  struct OfDevice {
    int tenths = 10;
    std::int64_t bytes = 0;
  };
  struct OfNode {
    int cpus = 0;
    std::vector<OfDevice> devices;
  };
  std::vector<OfNode> nodes;
};

struct Ask {
  int ranks = 1;
  int cpus = 0;
  int tenths = 0;  ///< A fraction, or 10 * devices.
  std::int64_t bytes = 0;
};

Cluster cluster_of(const Room& room) {
  Cluster out;
  for (const auto& node : room.nodes) {
    auto& made = out.nodes.emplace_back();
    made.name = "n" + std::to_string(out.nodes.size() - 1);
    made.cpus = node.cpus;
    for (const auto& device : node.devices) made.devices.push_back({.uuid = "d", .memory_bytes = device.bytes});
  }
  return out;
}

PlacementRequest request_of(const Ask& ask) {
  PlacementRequest out;
  out.name = "pool";
  out.ranks = ask.ranks;
  out.per_rank = {.cpus = static_cast<double>(ask.cpus), .gpus = ask.tenths / 10.0, .gpu_memory_bytes = ask.bytes};
  return out;
}

/// Books a placement; false when it over-commits anything, or gives a rank not what it asked for.
bool book(Room& room, const Placement& placement, const Ask& ask) {
  if (placement.ranks.size() != static_cast<std::size_t>(ask.ranks)) return false;
  const auto wanted = static_cast<std::size_t>((ask.tenths + 9) / 10);
  for (const RankPlacement& rank : placement.ranks) {
    auto& node = room.nodes.at(static_cast<std::size_t>(rank.node));
    if ((node.cpus -= ask.cpus) < 0 || rank.devices.size() != wanted) return false;
    for (std::size_t i = 0; i < rank.devices.size(); ++i) {
      const DeviceShare& share = rank.devices[i];
      auto& device = node.devices.at(static_cast<std::size_t>(share.device));
      if (share.node != rank.node || (i > 0 && rank.devices[i - 1].device == share.device)) return false;
      if ((device.tenths -= std::min(ask.tenths, 10)) < 0 || (device.bytes -= ask.bytes) < 0) return false;
    }
  }
  return true;
}

/// Tries every set of devices of every node for every rank in turn.
class Search {
 public:
  Search(Room room, Ask ask, const Placement* beside) : room_(std::move(room)), ask_(ask), beside_(beside) {}

  bool fits(int rank = 0) {
    if (rank == ask_.ranks) return true;
    const RankPlacement* beside = nullptr;
    if (beside_ != nullptr) beside = &beside_->ranks[static_cast<std::size_t>(rank) * beside_->ranks.size() / static_cast<std::size_t>(ask_.ranks)];
    for (std::size_t n = 0; n < room_.nodes.size(); ++n) {
      if (beside != nullptr && beside->node != static_cast<int>(n)) continue;
      const auto sets = 1U << room_.nodes[n].devices.size();
      for (unsigned set = 0; set < sets; ++set) {
        if (allowed(set, beside) && try_set(rank, n, set)) return true;
      }
    }
    return false;
  }

 private:
  bool allowed(unsigned set, const RankPlacement* beside) const {
    if (__builtin_popcount(set) != (ask_.tenths + 9) / 10) return false;
    if (beside == nullptr || beside->devices.empty()) return true;
    unsigned of_other = 0;
    for (const DeviceShare& share : beside->devices) of_other |= 1U << share.device;
    return (set & ~of_other) == 0;
  }

  bool try_set(int rank, std::size_t n, unsigned set) {
    const Room before = room_;
    auto& node = room_.nodes[n];
    bool ok = (node.cpus -= ask_.cpus) >= 0;
    for (std::size_t d = 0; d < node.devices.size(); ++d) {
      if ((set >> d & 1U) == 0) continue;
      ok = (node.devices[d].tenths -= std::min(ask_.tenths, 10)) >= 0 && ok;
      ok = (node.devices[d].bytes -= ask_.bytes) >= 0 && ok;
    }
    ok = ok && fits(rank + 1);
    room_ = before;
    return ok;
  }

  Room room_;
  Ask ask_;
  const Placement* beside_;
};

Room any_room() {
  Room out;
  out.nodes.resize(*rc::gen::inRange<std::size_t>(1, 4));
  for (auto& node : out.nodes) {
    node.cpus = *rc::gen::inRange(0, 6);
    node.devices.resize(*rc::gen::inRange<std::size_t>(0, 4));
    for (auto& device : node.devices) device.bytes = *rc::gen::inRange(0, 9);
  }
  return out;
}

Ask any_ask() {
  Ask out;
  out.ranks = *rc::gen::inRange(1, 5);
  out.cpus = *rc::gen::inRange(0, 3);
  out.tenths = *rc::gen::element(0, 1, 2, 3, 4, 5, 7, 9, 10, 20, 30);
  out.bytes = out.tenths == 0 ? 0 : *rc::gen::inRange(0, 5);
  return out;
}

/// One pool asks; the answer is compared with the search, before it is booked.
struct World {
  Room empty = any_room();
  Room room = empty;
  std::vector<Placement> taken;
  std::vector<Ask> asks;

  void ask(bool sharing) {
    const Ask ask = any_ask();
    PlacementRequest request = request_of(ask);
    Room stays = empty;
    if (sharing && !taken.empty()) {
      const auto with = *rc::gen::inRange<std::size_t>(0, taken.size());
      request.share_devices_with = taken[with];
      RC_ASSERT(book(stays, taken[with], asks[with]));
    }
    const Placement* beside = request.share_devices_with ? &*request.share_devices_with : nullptr;
    const auto placed = place(request, cluster_of(empty), taken);
    RC_ASSERT(placed.has_value() == Search(room, ask, beside).fits());
    if (!placed) {
      RC_ASSERT((placed.error().code == Errc::kInfeasible) == !Search(stays, ask, beside).fits());
      RC_ASSERT(placed.error().code == Errc::kInfeasible || placed.error().code == Errc::kResourcesBusy);
      return;
    }
    RC_ASSERT(book(room, *placed, ask));
    if (beside != nullptr) check_beside(*placed, *beside);
    taken.push_back(*placed);
    asks.push_back(ask);
  }

  static void check_beside(const Placement& placed, const Placement& other) {
    for (std::size_t j = 0; j < placed.ranks.size(); ++j) {
      const auto& mate = other.ranks[j * other.ranks.size() / placed.ranks.size()];
      RC_ASSERT(placed.ranks[j].node == mate.node);
      for (const auto& share : placed.ranks[j].devices) {
        const auto same = [&](const DeviceShare& theirs) { return theirs.device == share.device; };
        RC_ASSERT(mate.devices.empty() || std::ranges::any_of(mate.devices, same));
      }
    }
  }
};

// RES-1, RES-2, RES-3: never over-commits, never refuses what a search over all placements can place, and calls
// infeasible just what no empty cluster holds; shares, whole devices, memory and cpus on uneven nodes
TEST(PlaceSearch, FindsExactlyWhatFits) {
  EXPECT_TRUE(rc::check([] {
    World world;
    for (int pool = 0; pool < 5; ++pool) world.ask(false);
  }));
}

// RES-1, RES-2: the same for pools beside others
TEST(PlaceSearch, FindsExactlyWhatFitsBesideAnotherPool) {
  EXPECT_TRUE(rc::check([] {
    World world;
    for (int pool = 0; pool < 6; ++pool) world.ask(pool % 2 == 1);
  }));
}

// R1 (ray#42683): a bundle of {.1} and two of {.9} on two devices: nobody pends inside its own reservation
TEST(PlaceSearch, GivesEveryRankOfABundleItsDevice) {
  const Room room{{{.cpus = 0, .devices = {{10, 8}, {10, 8}}}}};
  std::vector<Placement> taken;
  for (const Ask& ask : {Ask{.ranks = 1, .tenths = 1, .bytes = 1}, Ask{.ranks = 2, .tenths = 9, .bytes = 1}}) {
    auto placed = place(request_of(ask), cluster_of(room), taken);
    ASSERT_TRUE(placed) << placed.error().describe();
    taken.push_back(std::move(*placed));
  }
  EXPECT_EQ(taken[0].ranks[0].devices[0].device, 0);
  EXPECT_EQ(taken[1].ranks[0].devices[0].device, 0);
  EXPECT_EQ(taken[1].ranks[1].devices[0].device, 1);
}

// R1: all or nothing: a pool that fits in part takes nothing
TEST(PlaceSearch, TakesNothingWhenOneRankDoesNotFit) {
  const Room room{{{.cpus = 4, .devices = {{10, 8}, {10, 8}}}}};
  EXPECT_FALSE(place(request_of({.ranks = 3, .tenths = 10}), cluster_of(room), {}));
  EXPECT_TRUE(place(request_of({.ranks = 2, .tenths = 10}), cluster_of(room), {}));
}

}  // namespace
}  // namespace troupe
