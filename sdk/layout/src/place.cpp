#include <troupe/layout/resources.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include <troupe/base/text.hpp>
#include <troupe/base/units.hpp>

namespace troupe {
namespace {

constexpr double kSlack = 1e-9;       // ten shares of 0.1 fill a device
constexpr int kMostRanks = 1 << 20;  // as for a Mesh

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

/// How many devices a rank needs. A number past any cluster stays one that an integer holds.
std::size_t device_count(const Resources& asked) {
  if (asked.gpus == 0) return 0;
  return asked.gpus <= 1 ? 1 : static_cast<std::size_t>(std::min(asked.gpus, 1e9));
}

double share_of_device(const Resources& asked) { return std::min(asked.gpus, 1.0); }

/// The devices of `node` that a rank may use: all, or those of the rank it goes beside.
std::vector<std::size_t> candidates(const FreeNode& node, const RankPlacement* beside) {
  std::vector<std::size_t> out;
  if (beside != nullptr && !beside->devices.empty()) {
    for (const DeviceShare& share : beside->devices) out.push_back(static_cast<std::size_t>(share.device));
    std::ranges::sort(out);
    return out;
  }
  for (std::size_t device = 0; device < node.shares.size(); ++device) out.push_back(device);
  return out;
}

/// First-fit over devices in order: whole devices, or one that still has the share (RES-2). Fewer than asked when
/// they do not suffice.
std::vector<DeviceShare> find_devices(const FreeNode& node, int index, const Resources& asked, const RankPlacement* beside) {
  const double share = share_of_device(asked);
  std::vector<DeviceShare> out;
  if (device_count(asked) == 0) return out;
  for (const std::size_t device : candidates(node, beside)) {
    const bool fits = node.shares[device] + kSlack >= share && node.device_bytes[device] >= asked.gpu_memory_bytes;
    if (fits) out.push_back({index, static_cast<int>(device), share, asked.gpu_memory_bytes});
    if (out.size() == device_count(asked)) break;
  }
  return out;
}

bool fits_beside_devices(const FreeNode& node, const Resources& asked) {
  const auto has = [&](const auto& custom) {
    const auto found = node.custom.find(custom.first);
    return custom.second <= (found == node.custom.end() ? 0 : found->second) + kSlack;
  };
  return asked.cpus <= node.cpus + kSlack && asked.host_memory_bytes <= node.memory_bytes &&
         std::ranges::all_of(asked.custom, has);
}

/// The resource of which a node has least for one rank, and how much of what was asked that is (0 .. 1).
struct Lack {
  double part = 2;
  std::string what;
};

/// What part of its devices a rank would find: a device half as free as needed counts half.
double device_part(const FreeNode& node, const Resources& asked, const std::vector<std::size_t>& devices) {
  std::vector<double> parts;
  for (const std::size_t device : devices) {
    double part = std::min(1.0, node.shares[device] / share_of_device(asked));
    if (asked.gpu_memory_bytes > 0) {
      part = std::min(part, static_cast<double>(node.device_bytes[device]) / static_cast<double>(asked.gpu_memory_bytes));
    }
    parts.push_back(std::max(part, 0.0));
  }
  std::ranges::sort(parts, std::greater{});
  parts.resize(std::min(parts.size(), device_count(asked)));
  return std::accumulate(parts.begin(), parts.end(), 0.0) / static_cast<double>(device_count(asked));
}

/// R2: shares are told per device, since their sum says nothing.
std::string describe_devices(const FreeNode& node, const std::string& name, const Resources& asked,
                             const std::vector<std::size_t>& devices) {
  const bool with_memory = asked.gpu_memory_bytes > 0;
  std::string out = text("gpus: asked ", asked.gpus, with_memory ? " with " + format_bytes(asked.gpu_memory_bytes) + " each" : "",
                         ", free on node ", name, ": ", devices.empty() ? "no device" : "");
  for (const std::size_t device : devices) {
    out += text(device == devices.front() ? "" : "; ", "device ", device, ": ", std::max(0.0, node.shares[device]));
    if (with_memory) out += text(" and ", format_bytes(node.device_bytes[device]));
  }
  return out;
}

Lack lack_of(const FreeNode& node, const std::string& name, const Resources& asked, const RankPlacement* beside) {
  Lack out;
  const auto note = [&out](double part, auto describe) {
    if (part < out.part) out = {part, describe()};
  };
  if (asked.cpus > 0) {
    note(node.cpus / asked.cpus, [&] { return text("cpus: asked ", asked.cpus, ", free ", node.cpus, " on node ", name); });
  }
  if (asked.host_memory_bytes > 0) {
    note(static_cast<double>(node.memory_bytes) / static_cast<double>(asked.host_memory_bytes), [&] {
      return text("host memory: asked ", format_bytes(asked.host_memory_bytes), ", free ", format_bytes(node.memory_bytes), " on node ", name);
    });
  }
  for (const auto& [key, amount] : asked.custom) {
    if (amount == 0) continue;
    const auto found = node.custom.find(key);
    const double free = found == node.custom.end() ? 0 : found->second;
    note(free / amount, [&, &key = key, &amount = amount] { return text(key, ": asked ", amount, ", free ", free, " on node ", name); });
  }
  if (device_count(asked) > 0) {
    const auto devices = candidates(node, beside);
    note(device_part(node, asked, devices), [&] { return describe_devices(node, name, asked, devices); });
  }
  return out;
}

Result<void> check_resources(const PlacementRequest& request) {
  const auto wrong = [&](auto... parts) { return fail(Errc::kInvalidArgument, text("pool ", request.name, ": ", parts...)); };
  const Resources& asked = request.per_rank;
  if (request.ranks < 1 || request.ranks > kMostRanks) return wrong("ranks must be 1 .. ", kMostRanks, ", got ", request.ranks);
  const auto bad = [](double x) { return !(x >= 0) || !std::isfinite(x); };
  if (bad(asked.cpus)) return wrong("cpus must be a number >= 0, got ", asked.cpus);
  if (bad(asked.gpus)) return wrong("gpus must be a number >= 0, got ", asked.gpus);
  if (asked.gpus > 1 && asked.gpus != std::floor(asked.gpus)) return wrong("gpus must be whole, or one fraction < 1; got ", asked.gpus);
  if (asked.gpu_memory_bytes < 0) return wrong("gpu_memory_bytes must be >= 0, got ", asked.gpu_memory_bytes);
  if (asked.host_memory_bytes < 0) return wrong("host_memory_bytes must be >= 0, got ", asked.host_memory_bytes);
  if (asked.gpu_memory_bytes > 0 && asked.gpus == 0) {
    return wrong("gpu_memory_bytes is ", asked.gpu_memory_bytes, " without gpus: ask for a share of a device");
  }
  for (const auto& [key, amount] : asked.custom) {
    if (bad(amount)) return wrong(key, " must be a number >= 0, got ", amount);
  }
  return {};
}

/// A placement made for another cluster would be booked on devices that are not there.
Result<void> check_within(const Placement& placement, const Cluster& cluster, const std::string& whose) {
  const auto below = [](int index, std::size_t count) { return index >= 0 && static_cast<std::size_t>(index) < count; };
  for (std::size_t rank = 0; rank < placement.ranks.size(); ++rank) {
    const RankPlacement& at = placement.ranks[rank];
    const auto wrong = [&](auto... parts) {
      return fail(Errc::kInvalidArgument, text(whose, ", rank ", rank, ": ", parts..., "; was it made for another cluster?"));
    };
    if (!below(at.node, cluster.nodes.size())) return wrong("node ", at.node, " of ", cluster.nodes.size());
    const Node& node = cluster.nodes[static_cast<std::size_t>(at.node)];
    for (const DeviceShare& share : at.devices) {
      if (share.node != at.node) return wrong("on node ", at.node, ", but its device on node ", share.node);
      if (!below(share.device, node.devices.size())) {
        return wrong("device ", share.device, " of ", node.devices.size(), " on node ", node.name);
      }
    }
  }
  return {};
}

Result<void> check(const PlacementRequest& request, const Cluster& cluster, const std::vector<Placement>& taken) {
  if (auto ok = check_resources(request); !ok) return ok;
  for (std::size_t i = 0; i < taken.size(); ++i) {
    if (auto ok = check_within(taken[i], cluster, text("pool ", request.name, ": taken placement ", i)); !ok) return ok;
  }
  if (!request.share_devices_with) return {};
  if (request.share_devices_with->ranks.empty()) {
    return fail(Errc::kInvalidArgument, text("pool ", request.name, ": share_devices_with has no ranks; expected a placed pool"));
  }
  return check_within(*request.share_devices_with, cluster, text("pool ", request.name, ": share_devices_with"));
}

const RankPlacement* beside_of(const PlacementRequest& request, int rank) {
  if (!request.share_devices_with) return nullptr;
  const auto& others = request.share_devices_with->ranks;
  return &others[static_cast<std::size_t>(rank) * others.size() / static_cast<std::size_t>(request.ranks)];
}

/// Places one rank, or says what is lacking on the node that comes closest.
Result<RankPlacement> place_rank(std::vector<FreeNode>& free, const Cluster& cluster, const PlacementRequest& request, int rank) {
  const Resources& asked = request.per_rank;
  const RankPlacement* beside = beside_of(request, rank);
  const int first = beside == nullptr ? 0 : beside->node;
  const int end = beside == nullptr ? static_cast<int>(free.size()) : first + 1;
  for (int n = first; n < end; ++n) {
    FreeNode& node = free[static_cast<std::size_t>(n)];
    if (!fits_beside_devices(node, asked)) continue;
    RankPlacement out{n, find_devices(node, n, asked, beside), asked};
    if (out.devices.size() < device_count(asked)) continue;
    take(node, out);
    return out;
  }
  Lack least{-1, "the cluster has no node"};
  for (int n = first; n < end; ++n) {
    const auto at = static_cast<std::size_t>(n);
    Lack lack = lack_of(free[at], cluster.nodes[at].name, asked, beside);
    if (lack.part > least.part) least = std::move(lack);
  }
  if (beside != nullptr) least.what += " beside the pool it shares devices with";
  return fail(Errc::kResourcesBusy, std::move(least.what));
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
  if (auto ok = check(request, cluster, taken); !ok) return fail(std::move(ok.error()));
  auto placed = place_all(left_of(cluster, taken), cluster, request);
  if (placed) return placed;
  // RES-3: would it fit if nobody else were here? The pool it goes beside stays: without it there is no beside.
  std::vector<Placement> stays;
  if (request.share_devices_with) stays.push_back(*request.share_devices_with);
  if (auto alone = place_all(left_of(cluster, stays), cluster, request); !alone) {
    const char* why = stays.empty() ? "; even the empty cluster can't hold it: ask for less"
                                    : "; nobody else is in the way: ask for less here or in that pool";
    return fail(Errc::kInfeasible, alone.error().message + why);
  }
  return fail(Errc::kResourcesBusy, placed.error().message + "; others hold it now: close a pool or ask for less");
}

}  // namespace troupe
