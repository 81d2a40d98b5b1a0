#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <troupe/transport/memory.hpp>

namespace troupe::transport::ucx {

// What two nodes say to each other. Everything that comes from outside is parsed here, by pure functions.

inline constexpr std::uint32_t kMagic = 0x31555254;   // "TRU1"
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::size_t kLargestText = 1 << 16;
inline constexpr std::int64_t kAlign = 64;            ///< Where tensors begin inside a packed part (TRN-3).

enum class Kind : std::uint8_t {
  kAnnounce = 1,  ///< A message: descriptors, meta, and the bytes where they are few.
  kAck,           ///< It was pulled.
  kNack,          ///< It was refused, or can't be had.
  kCancel,        ///< The sender does not wait for it any more.
  kEndOfSender,   ///< The sending end has ended the channel.
  kEndOfReceiver,
};

/// Of every active message: who sends, for which channel, which message, and which part of it.
struct Head {
  std::uint32_t magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint64_t node = 0;
  std::uint64_t channel = 0;
  std::uint64_t sequence = 0;
  std::uint64_t part = 0;
};

/// A message as it is announced. Tensors travel in parts: a large contiguous one alone, all others packed
/// together, each at a multiple of kAlign.
struct Announcement {
  std::vector<TensorDesc> tensors = {};
  std::vector<std::uint8_t> alone = {};   ///< Of each tensor: 1 when it is a part of its own.
  std::vector<std::byte> meta = {};
  bool is_inline = false;                 ///< The packed part came with it, in `packed`; there is no other.
  std::vector<std::byte> packed = {};
};

struct Control {
  Kind kind = Kind::kAck;
  std::int64_t copies = 0;    ///< kAck.
  std::uint8_t via = 0;       ///< kAck: a Via.
  Error why = {};             ///< Others: code and message.
};

/// A node as others reach it.
struct Address {
  std::uint64_t node = 0;              ///< Drawn anew for each life of a node.
  std::string host = {};               ///< Boot id.
  std::uint64_t user = 0;
  std::string namespaces = {};         ///< Of pids, ipc and users.
  std::vector<std::byte> local = {};   ///< Of its worker for shared memory; empty: none.
  std::vector<std::byte> network = {};
};

[[nodiscard]] std::vector<std::byte> write(const Announcement& announcement);
[[nodiscard]] std::vector<std::byte> write(const Control& control);
[[nodiscard]] std::vector<std::byte> write(const Address& address);

/// Fails with: kBadData for what is cut short, too large or contradicts itself; kMismatch for another version.
[[nodiscard]] Result<Head> read_head(std::span<const std::byte> bytes);
[[nodiscard]] Result<Announcement> read_announcement(std::span<const std::byte> bytes);
[[nodiscard]] Result<Control> read_control(std::span<const std::byte> bytes);
[[nodiscard]] Result<Address> read_address(std::span<const std::byte> bytes);

/// Where the tensors of the packed part lie; -1 for those that travel alone. `bytes` is its size.
struct Packing {
  std::vector<std::int64_t> offsets = {};
  std::int64_t bytes = 0;
};
[[nodiscard]] Packing packing_of(const std::vector<TensorDesc>& tensors, const std::vector<std::uint8_t>& alone);

}  // namespace troupe::transport::ucx
