#pragma once

#include <cstdint>

#include <troupe/transport/channel.hpp>

namespace troupe::transport {

enum class Backend : std::uint8_t {
  kInproc,  ///< Both ends in this process.
  kUcx,     ///< Between processes and hosts.
  kNccl,    ///< Between CUDA devices.
};

/// Opens a channel over `backend`.
/// Fails with: kUnavailable when this build has no such backend, naming what does (TRN-7); what the backend
/// fails with.
[[nodiscard]] Result<ChannelPair> open_channel(Backend backend, const Context& context, const ChannelOptions& options = {});

}  // namespace troupe::transport
