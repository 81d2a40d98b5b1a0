// In builds without UCX (TRN-7).
#include <troupe/transport/ucx.hpp>

namespace troupe::transport {

Result<std::shared_ptr<UcxNode>> UcxNode::create(const Context& /*context*/, const UcxOptions& /*options*/) {
  return fail(Errc::kUnavailable, "this build of Troupe has no UCX: configure with -DTROUPE_WITH_UCX=ON; tools/setup installs it");
}

}  // namespace troupe::transport
