#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <troupe/transport/channel.hpp>
#include <troupe/transport/group.hpp>

namespace troupe::transport {

/// How bytes travel between two nodes.
enum class UcxPath : std::uint8_t {
  kAuto,  ///< kCma where both are of one host, user and pid namespace, else kTcp.
  kCma,   ///< Shared memory; large tensors by one copy of the kernel from the sender's memory.
  kShm,   ///< Shared memory only: two copies.
  kTcp,
};

struct UcxOptions {
  UcxPath path = UcxPath::kAuto;
  Duration keepalive = std::chrono::seconds(1);   ///< How often a silent peer is looked at.
};

/// What a process communicates through: UCX workers, one progress thread, its peers and channels.
/// Nodes find each other by addresses that any control plane may carry; an address names one life of a node
/// (TRN-5), and channels between two nodes are told apart by a number that both ends choose alike.
/// From the first node on UCX's own log is silent in this process (it writes to stdout); a host that uses UCX itself
/// pushes its handler afterwards.
/// Thread: any.
class UcxNode {
 public:
  /// Fails with: kUnavailable without UCX in this build, or where UCX can't do `path` (TRN-7).
  [[nodiscard]] static Result<std::shared_ptr<UcxNode>> create(const Context& context, const UcxOptions& options = {});
  virtual ~UcxNode() = default;

  [[nodiscard]] virtual const std::vector<std::byte>& address() const noexcept = 0;

  /// The sending end of channel `number` to `peer`. What is sent before the other end was opened waits there.
  /// Fails with: kBadData (no address), kMismatch (another version), kUnavailable (no common path), kPeerLost.
  [[nodiscard]] virtual Result<std::unique_ptr<Sender>> open_sender(std::span<const std::byte> peer, std::uint64_t number, const ChannelOptions& options) = 0;
  /// The receiving end of channel `number` from `peer`. Fails with: as open_sender(); kInvalidArgument when it is open.
  [[nodiscard]] virtual Result<std::unique_ptr<Receiver>> open_receiver(std::span<const std::byte> peer, std::uint64_t number, const ChannelOptions& options) = 0;

  /// This member's end of a group: `members` are the addresses by rank, this node's own among them; `number` is
  /// of the group and its generation, the same at all members, and of no other channel or group of theirs.
  [[nodiscard]] virtual Result<std::unique_ptr<Group>> open_group(const std::string& name, std::uint64_t number, int rank,
                                                                  std::span<const std::vector<std::byte>> members) = 0;

  /// The control plane knows that `peer` is gone: everything with it ends with `why` (SUP-3). Idempotent.
  virtual void peer_down(std::span<const std::byte> peer, const Error& why) = 0;
};

}  // namespace troupe::transport
