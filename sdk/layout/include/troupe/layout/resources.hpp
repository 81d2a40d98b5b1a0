#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <troupe/base/result.hpp>

namespace troupe {

/// What one rank asks for.
struct Resources {
  double cpus = 0;                     ///< Accounting only; fractions allowed.
  double gpus = 0;                     ///< Whole devices, or one fraction < 1 of a single device.
  std::int64_t gpu_memory_bytes = 0;   ///< On each of its devices; a budget that is enforced (RES-5).
  std::int64_t host_memory_bytes = 0;
  std::map<std::string, double> custom = {};
};

/// One accelerator, or one simulated by host memory with a budget (RES-5).
struct Device {
  std::string uuid;
  std::int64_t memory_bytes = 0;
};

struct Node {
  std::string name;
  double cpus = 0;
  std::int64_t memory_bytes = 0;
  std::vector<Device> devices = {};
  std::map<std::string, double> custom = {};
};

/// What exists. Pure data; the runtime describes itself as one.
struct Cluster {
  std::vector<Node> nodes;
};

/// A share of one concrete device.
struct DeviceShare {
  int node = 0;
  int device = 0;
  double share = 0;
  std::int64_t memory_bytes = 0;
};

/// Where one rank runs, bound to concrete devices (RES-1).
struct RankPlacement {
  int node = 0;
  std::vector<DeviceShare> devices = {};
  Resources resources = {};
};

/// Where a pool runs, all of it or nothing.
struct Placement {
  std::vector<RankPlacement> ranks = {};
};

struct PlacementRequest {
  std::string name;                                      ///< Of the pool, for messages.
  int ranks = 1;
  Resources per_rank = {};
  std::optional<Placement> share_devices_with = {};      ///< Rank j of N beside rank floor(j*M/N) of M; is in `taken` too.
};

/// Finds devices for a request given what is `taken` already; packs: fills a device before it opens
/// the next, in order (the strategies beside pack come later).
/// Pure. RES-1: concrete devices, all or nothing. RES-2: fractions are packed per device and never
/// summed; memory counts beside the fraction.
/// Fails with: kInvalidArgument (NaN, negative, fraction > 1 that is not whole, ranks < 1, a placement made for
/// another cluster); kInfeasible when the cluster could not hold it though empty but for the pool it shares
/// devices with, kResourcesBusy when it could (RES-3). Both name the resource that is scarcest on the node that
/// comes closest, asked and free.
[[nodiscard]] Result<Placement> place(const PlacementRequest& request, const Cluster& cluster,
                                      const std::vector<Placement>& taken);

}  // namespace troupe
