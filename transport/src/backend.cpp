#include <troupe/transport/backend.hpp>

#include <troupe/base/text.hpp>

namespace troupe::transport {

Result<ChannelPair> open_channel(Backend backend, const Context& context, const ChannelOptions& options) {
  if (backend == Backend::kInproc) return open_inproc(context, options);
  if (backend == Backend::kUcx) return fail(Errc::kUnavailable, text("channel ", options.name, ": UCX channels have their ends in two processes: open them with a UcxNode each (troupe/transport/ucx.hpp)"));
  // TRN-7: said, never replaced by another path
  return fail(Errc::kUnavailable, text("channel ", options.name, ": this version of Troupe has no NCCL backend; Backend::kInproc is there"));
}

}  // namespace troupe::transport
