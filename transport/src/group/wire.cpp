#include "wire.hpp"

#include <cstring>

#include <troupe/base/text.hpp>

namespace troupe::transport {
namespace {

constexpr std::uint32_t kMagic = 0x31475254;  // "TRG1": format 1

/// The part of a header with a fixed size; copied in and out, since a transport need not align it.
struct Fixed {
  std::uint32_t magic = kMagic;
  std::uint8_t operation = 0, reduce = 0, dtype = 0, phase = 0;
  std::int32_t root = 0;
  std::uint32_t in = 0, out = 0, padding = 0;
  std::uint64_t ticket = 0, index = 0;
};
static_assert(sizeof(Fixed) == 40);

template <class... Parts>
tl::unexpected<Error> disagree(const Header& mine, const Parts&... parts) {
  return fail(Errc::kMismatch, text(mine.where(), ": ", parts..., "; all members must make the same call"));
}

/// Fields that must be equal on all members, whatever the operation.
Result<void> agree_on_call(const Header& first, const Header& other, std::size_t rank) {
  if (first.operation != other.operation || first.position != other.position) {
    return disagree(first, "member ", rank, " is in ", other.where(), ", member 0 in ", first.where());
  }
  if (first.dtype != other.dtype) {
    return disagree(first, "member ", rank, " gave ", to_string(other.dtype), ", member 0 ", to_string(first.dtype));
  }
  if (first.reduce != other.reduce) return disagree(first, "member ", rank, " and member 0 reduce differently (sum, max)");
  if (first.root != other.root) return disagree(first, "member ", rank, " names root ", other.root, ", member 0 root ", first.root);
  if ((first.phase == kShapesOnly) != (other.phase == kShapesOnly)) {
    return disagree(first, "one of members 0 and ", rank, " gave tensors without data (on the meta device), the other tensors with data");
  }
  if (first.phase != other.phase) return disagree(first, "member ", rank, " is in another phase than member 0");
  return {};
}

Result<void> agree_on_vector(const Header& first, const std::vector<std::int64_t>& expected,
                             const std::vector<std::int64_t>& got, std::size_t rank) {
  if (expected.size() != got.size()) return disagree(first, "member ", rank, " gave ", got.size(), " counts, member 0 ", expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (expected[i] == got[i]) continue;
    return disagree(first, "member ", rank, " has ", got[i], " elements where member 0 has ", expected[i], " (tensor ", i, ")");
  }
  return {};
}

/// What `giver` gives `taker` must be what the taker expects of it.
Result<void> agree_on_pair(const Header& first, std::int64_t given, std::int64_t expected, std::size_t giver, std::size_t taker) {
  if (given == expected) return {};
  return disagree(first, "member ", giver, " gives ", given, " elements, member ", taker, " expects ", expected);
}

Result<void> agree_on_counts(std::span<const Header> members, std::size_t rank) {
  const Header &first = members[0], &other = members[rank];
  switch (first.operation) {
    case Collective::kAllGather:
      if (auto same = agree_on_vector(first, first.out, other.out, rank); !same) return same;
      return agree_on_pair(first, other.in[0], first.out[rank], rank, 0);
    case Collective::kReduceScatter:
      if (auto same = agree_on_vector(first, first.in, other.in, rank); !same) return same;
      return agree_on_pair(first, first.in[rank], other.out[0], 0, rank);
    case Collective::kAllToAll:
      for (std::size_t taker = 0; taker < members.size(); ++taker) {
        if (auto same = agree_on_pair(first, other.in[taker], members[taker].out[rank], rank, taker); !same) return same;
      }
      return {};
    default: return agree_on_vector(first, first.in, other.in, rank);
  }
}

std::byte* put(std::byte* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return to + bytes;
}

}  // namespace

std::string_view to_string(Collective operation) noexcept {
  switch (operation) {
    case Collective::kAllReduce: return "all_reduce";
    case Collective::kAllGather: return "all_gather";
    case Collective::kReduceScatter: return "reduce_scatter";
    case Collective::kAllToAll: return "all_to_all";
    case Collective::kBroadcast: return "broadcast";
    case Collective::kBarrier: return "barrier";
  }
  return "unknown operation";
}

std::string Header::where() const {
  return text(to_string(operation), " at ticket ", position.ticket, ", index ", position.index);
}

std::vector<std::byte> encode(const Header& header) {
  Fixed fixed;
  fixed.operation = static_cast<std::uint8_t>(header.operation);
  fixed.reduce = static_cast<std::uint8_t>(header.reduce);
  fixed.dtype = static_cast<std::uint8_t>(header.dtype);
  fixed.phase = header.phase;
  fixed.root = header.root;
  fixed.in = static_cast<std::uint32_t>(header.in.size());
  fixed.out = static_cast<std::uint32_t>(header.out.size());
  fixed.ticket = header.position.ticket;
  fixed.index = header.position.index;
  std::vector<std::byte> bytes(sizeof(Fixed) + (header.in.size() + header.out.size()) * sizeof(std::int64_t));
  std::byte* at = put(bytes.data(), &fixed, sizeof(Fixed));
  at = put(at, header.in.data(), header.in.size() * sizeof(std::int64_t));
  put(at, header.out.data(), header.out.size() * sizeof(std::int64_t));
  return bytes;
}

Result<Header> decode(std::span<const std::byte> bytes) {
  Fixed fixed;
  if (bytes.size() < sizeof(Fixed)) return fail(Errc::kBadData, text("a group message of ", bytes.size(), " bytes has no header"));
  std::memcpy(&fixed, bytes.data(), sizeof(Fixed));
  const std::uint64_t counts = std::uint64_t{fixed.in} + fixed.out;
  if (fixed.magic != kMagic || bytes.size() - sizeof(Fixed) != counts * sizeof(std::int64_t)) {
    return fail(Errc::kBadData, text("a group message of ", bytes.size(), " bytes is not of format 1; do all members run the same build?"));
  }
  Header header{static_cast<Collective>(fixed.operation), static_cast<Reduce>(fixed.reduce), static_cast<DType>(fixed.dtype),
                fixed.phase, fixed.root, {fixed.ticket, fixed.index}, {}, {}};
  header.in.resize(fixed.in);
  header.out.resize(fixed.out);
  const std::byte* in = bytes.data() + sizeof(Fixed);
  if (fixed.in > 0) std::memcpy(header.in.data(), in, fixed.in * sizeof(std::int64_t));
  if (fixed.out > 0) std::memcpy(header.out.data(), in + fixed.in * sizeof(std::int64_t), fixed.out * sizeof(std::int64_t));
  return header;
}

Result<void> agree(std::span<const Header> members) {
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    if (auto same = agree_on_call(members[0], members[rank], rank); !same) return same;
  }
  // Counts by rank are P long on every member, or the group sizes differ.
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    const Header &first = members[0], &other = members[rank];
    if (other.in.size() != first.in.size() || other.out.size() != first.out.size()) {
      return disagree(first, "member ", rank, " gave ", other.in.size(), " and ", other.out.size(), " counts, member 0 ",
                      first.in.size(), " and ", first.out.size());
    }
  }
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    if (auto same = agree_on_counts(members, rank); !same) return same;
  }
  return {};
}

}  // namespace troupe::transport
