#include "group/local_group.hpp"

namespace troupe::transport {

Result<std::vector<std::unique_ptr<Group>>> open_inproc_group(const Context& context, const std::string& name, int size) {
  return connect_members(context, name, size, open_inproc);
}

}  // namespace troupe::transport
