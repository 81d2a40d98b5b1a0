#include <troupe/train/report_stage.hpp>

#include <troupe/base/text.hpp>

namespace troupe::detail {
namespace {

std::string device_text(const RankPlacement& placement) {
  std::string out;
  for (const DeviceShare& device : placement.devices) {
    out += text(out.empty() ? "" : ", ", "device ", device.device);
    if (device.node > 0) out += text(" of node ", device.node);
    if (device.share < 1) out += text(" (", device.share, " of it)");
  }
  return out.empty() ? "host" : out;
}

}  // namespace

Result<ReportStage> describe_layout(const Pool<StageHost>& pool, const std::vector<std::int64_t>& peak_bytes, Duration timeout) {
  const auto described = pool.call<&StageHost::describe>().get(timeout);
  if (!described) return fail(described.error());
  ReportStage out{.name = pool.name(), .mesh = pool.mesh().to_string(), .ranks = {}};
  for (std::size_t rank = 0; rank < described->size(); ++rank) {
    const RankPlacement& placement = pool.placement().ranks.at(rank);
    ReportRank one{.device = device_text(placement), .parameters = (*described)[rank].parameters};
    if (rank < peak_bytes.size()) one.peak_bytes = peak_bytes[rank];
    for (const DeviceShare& device : placement.devices) one.budget_bytes += device.memory_bytes;
    out.ranks.push_back(std::move(one));
  }
  return out;
}

}  // namespace troupe::detail
