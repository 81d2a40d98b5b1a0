#include <troupe/layout/resources.hpp>

#include <algorithm>
#include <cmath>

#include <troupe/base/text.hpp>
#include <troupe/base/units.hpp>

namespace troupe {
namespace {

constexpr double kSlack = 1e-9;  // ten shares of 0.1 fill a device

/// What is left of one node.
struct FreeNode {
  double cpus = 0;
  std::int64_t memory_bytes = 0;
  std::vector<double> shares;                ///< Per device, 1: untouched.
  std::vector<std::int64_t> device_bytes;
  std::map<std::string, double> custom;
};

std::vector<FreeNode> all_of(const Cluster& cluster) {
  std::vector<FreeNode> out;
  for (const Node& node : cluster.nodes) {
    FreeNode free{node.cpus, node.memory_bytes, {}, {}, node.custom};
    for (const Device& device : node.devices) {
      free.shares.push_back(1.0);
      free.device_bytes.push_back(device.memory_bytes);
    }
    out.push_back(std::move(free));
  }
  return out;
}

void take(FreeNode& node, const RankPlacement& rank) {
  node.cpus -= rank.resources.cpus;
  node.memory_bytes -= rank.resources.host_memory_bytes;
  for (const auto& [name, amount] : rank.resources.custom) node.custom[name] -= amount;
  for (const DeviceShare& share : rank.devices) {
    node.shares[static_cast<std::size_t>(share.device)] -= share.share;
    node.device_bytes[static_cast<std::size_t>(share.device)] -= share.memory_bytes;
  }
}

std::vector<FreeNode> left_of(const Cluster& cluster, const std::vector<Placement>& taken) {
  auto out = all_of(cluster);
  for (const Placement& placement : taken) {
    for (const RankPlacement& rank : placement.ranks) take(out[static_cast<std::size_t>(rank.node)], rank);
  }
  return out;
}

bool device_fits(const FreeNode& node, std::size_t device, double share, std::int64_t bytes) {
  return node.shares[device] + kSlack >= share && node.device_bytes[device] >= bytes;
}

/// First-fit over devices in order: whole devices, or one that still has the share (RES-2).
std::vector<DeviceShare> find_devices(const FreeNode& node, int index, const Resources& asked, const std::vector<int>& only) {
  const int count = asked.gpus == 0 ? 0 : std::max(1, static_cast<int>(asked.gpus));
  const double share = asked.gpus < 1 ? asked.gpus : 1.0;
  std::vector<DeviceShare> out;
  for (std::size_t device = 0; device < node.shares.size() && static_cast<int>(out.size()) < count; ++device) {
    if (!only.empty() && std::ranges::find(only, static_cast<int>(device)) == only.end()) continue;
    if (device_fits(node, device, share, asked.gpu_memory_bytes)) out.push_back({index, static_cast<int>(device), share, asked.gpu_memory_bytes});
  }
  return out;
}

/// Why `asked` does not fit on `node`, or empty.
std::string lacks(const FreeNode& node, const std::string& name, const Resources& asked, std::size_t devices) {
  if (asked.cpus > node.cpus + kSlack) return text("cpus: asked ", asked.cpus, ", free ", node.cpus, " on node ", name);
  if (asked.host_memory_bytes > node.memory_bytes) {
    return text("host memory: asked ", format_bytes(asked.host_memory_bytes), ", free ", format_bytes(node.memory_bytes), " on node ", name);
  }
  for (const auto& [key, amount] : asked.custom) {
    const auto found = node.custom.find(key);
    const double free = found == node.custom.end() ? 0 : found->second;
    if (amount > free + kSlack) return text(key, ": asked ", amount, ", free ", free, " on node ", name);
  }
  const auto count = asked.gpus == 0 ? 0U : static_cast<std::size_t>(std::max(1.0, asked.gpus));
  if (devices >= count) return {};
  std::string per_device;
  for (std::size_t i = 0; i < node.shares.size(); ++i) {
    per_device += text(i == 0 ? "" : "; ", "device ", i, ": ", std::max(0.0, node.shares[i]), " and ", format_bytes(node.device_bytes[i]));
  }
  return text("gpus: asked ", asked.gpus, " with ", format_bytes(asked.gpu_memory_bytes), " each, free on node ", name, ": ",
              per_device.empty() ? "no device" : per_device);
}

Result<void> check(const PlacementRequest& request) {
  const auto wrong = [&](auto... parts) { return fail(Errc::kInvalidArgument, text("pool ", request.name, ": ", parts...)); };
  const Resources& asked = request.per_rank;
  if (request.ranks < 1) return wrong("ranks must be >= 1, got ", request.ranks);
  const auto bad = [](double x) { return !(x >= 0) || !std::isfinite(x); };
  if (bad(asked.cpus)) return wrong("cpus must be a number >= 0, got ", asked.cpus);
  if (bad(asked.gpus)) return wrong("gpus must be a number >= 0, got ", asked.gpus);
  if (asked.gpus > 1 && asked.gpus != std::floor(asked.gpus)) return wrong("gpus must be whole, or one fraction < 1; got ", asked.gpus);
  if (asked.gpu_memory_bytes < 0 || asked.host_memory_bytes < 0) return wrong("memory must be >= 0 bytes");
  if (asked.gpu_memory_bytes > 0 && asked.gpus == 0) return wrong("gpu_memory_bytes without gpus: ask for a share of a device");
  for (const auto& [key, amount] : asked.custom) {
    if (bad(amount)) return wrong(key, " must be a number >= 0, got ", amount);
  }
  return {};
}

/// Places one rank, or says what is lacking on the node that came closest.
Result<RankPlacement> place_rank(std::vector<FreeNode>& free, const Cluster& cluster, const PlacementRequest& request, int rank) {
  std::string why = "the cluster has no node";
  const RankPlacement* beside = nullptr;
  if (request.share_devices_with) {
    const auto& others = request.share_devices_with->ranks;
    beside = &others[static_cast<std::size_t>(rank) * others.size() / static_cast<std::size_t>(request.ranks)];
  }
  for (std::size_t n = 0; n < free.size(); ++n) {
    if (beside != nullptr && beside->node != static_cast<int>(n)) continue;
    std::vector<int> only;
    if (beside != nullptr) {
      for (const auto& share : beside->devices) only.push_back(share.device);
    }
    auto devices = find_devices(free[n], static_cast<int>(n), request.per_rank, only);
    std::string missing = lacks(free[n], cluster.nodes[n].name, request.per_rank, devices.size());
    if (missing.empty()) {
      RankPlacement out{static_cast<int>(n), std::move(devices), request.per_rank};
      take(free[n], out);
      return out;
    }
    why = std::move(missing);
  }
  return fail(Errc::kResourcesBusy, std::move(why));
}

Result<Placement> place_all(std::vector<FreeNode> free, const Cluster& cluster, const PlacementRequest& request) {
  Placement out;
  for (int rank = 0; rank < request.ranks; ++rank) {
    auto placed = place_rank(free, cluster, request, rank);
    if (!placed) {
      placed.error().message = text("pool ", request.name, ", rank ", rank, " of ", request.ranks, ": ", placed.error().message);
      return fail(std::move(placed.error()));
    }
    out.ranks.push_back(std::move(*placed));
  }
  return out;
}

}  // namespace

Result<Placement> place(const PlacementRequest& request, const Cluster& cluster, const std::vector<Placement>& taken) {
  if (auto ok = check(request); !ok) return fail(std::move(ok.error()));
  auto placed = place_all(left_of(cluster, taken), cluster, request);
  if (placed) return placed;
  // RES-3: would it fit if nobody else were here?
  if (auto alone = place_all(all_of(cluster), cluster, request); !alone) {
    return fail(Errc::kInfeasible, alone.error().message + "; even the empty cluster can't hold it: ask for less");
  }
  return fail(Errc::kResourcesBusy, placed.error().message + "; others hold it now: close a pool or ask for less");
}

}  // namespace troupe
