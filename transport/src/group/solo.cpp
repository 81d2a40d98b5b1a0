#include <utility>

#include "member.hpp"

namespace troupe::transport {

std::unique_ptr<Group> solo_group(std::string name, std::shared_ptr<TransferCounters> counters) {
  if (!counters) counters = std::make_shared<TransferCounters>();
  // No peers, so no channel and no executor: the collectives reduce to their local copies.
  return make_group({system_clock(), nullptr, nullptr, std::move(counters)}, {.name = std::move(name)});
}

}  // namespace troupe::transport
