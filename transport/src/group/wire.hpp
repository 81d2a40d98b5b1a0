#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/transport/group.hpp>

namespace troupe::transport {

enum class Collective : std::uint8_t { kAllReduce = 1, kAllGather, kReduceScatter, kAllToAll, kBroadcast, kBarrier };
[[nodiscard]] std::string_view to_string(Collective operation) noexcept;

/// Where in a collective a message belongs.
inline constexpr std::uint8_t kRendezvous = 0;   ///< The first messages, with data.
inline constexpr std::uint8_t kReduced = 1;      ///< Reduced chunks.
inline constexpr std::uint8_t kShapesOnly = 2;   ///< The only messages: the tensors have no data.

/// What one member says about the call it is in: the meta bytes of every message of a collective.
struct Header {
  Collective operation = Collective::kBarrier;
  Reduce reduce = Reduce::kSum;
  DType dtype = DType::kU8;
  std::uint8_t phase = kRendezvous;
  std::int32_t root = -1;
  Position position = {};
  std::vector<std::int64_t> in = {};   ///< Elements given, per tensor.
  std::vector<std::int64_t> out = {};  ///< Elements expected, per tensor.
  friend bool operator==(const Header&, const Header&) = default;

  [[nodiscard]] std::string where() const;  ///< "all_reduce at ticket 3, index 1"
};

[[nodiscard]] std::vector<std::byte> encode(const Header& header);
/// Fails with: kBadData when the bytes are not a header of ours.
[[nodiscard]] Result<Header> decode(std::span<const std::byte> bytes);

/// Compares what all members said, by rank. Every member has the same headers, so all come to the same
/// verdict without asking again (TRN-8).
/// Fails with: kMismatch naming the first two that disagree.
[[nodiscard]] Result<void> agree(std::span<const Header> members);

}  // namespace troupe::transport
