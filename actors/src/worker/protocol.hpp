#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <troupe/actors/pool.hpp>

namespace troupe::detail {

// What the host process and a worker say to each other, over one stream socket. A frame is its size (u32) and that
// many bytes: kind, then the fields in order. Requests carry a number that their answer repeats.

inline constexpr std::uint32_t kProtocolVersion = 1;
inline constexpr std::size_t kLargestFrame = 1 << 20;   ///< Control is small: tensors and large values are not sent here.

enum class Frame : std::uint8_t {
  kHello = 1,      ///< Worker: version, table hash.
  kMake,           ///< Host: pool, rank, generation, class, constructor arguments. Answered when the constructor has ended.
  kRun,            ///< Host: pool, rank, ticket, generation, verb, arguments. Answered when the verb has ended.
  kDestroy,        ///< Host: pool, rank. Answered when the object is gone.
  kEndGeneration,  ///< Host: pool, generation, why.
  kStop,           ///< Host: pool: its ranks' stop tokens.
  kPing,           ///< Host: answered at once, whatever the ranks do (SUP-10).
  kAnswer,         ///< Worker: number, error or value.
};

/// A pool as a worker needs to know it.
struct PoolTicket {
  std::uint64_t id = 0;
  std::string name;
  std::vector<std::string> axes = {};
  std::vector<int> sizes = {};
  std::int64_t collective_deadline = 0;   ///< Nanoseconds.
  std::vector<int> workers = {};          ///< Of each rank.
  std::uint64_t class_id = 0;
  static auto troupe_fields(auto& self) { return std::tie(self.id, self.name, self.axes, self.sizes, self.collective_deadline, self.workers, self.class_id); }
};

/// One call for one rank; the arguments follow.
struct RunTicket {
  std::uint64_t pool = 0;
  int rank = 0;
  std::uint64_t ticket = 0;
  std::uint64_t generation = 0;
  bool has_groups = false;      ///< An all-rank call (POOL-2).
  std::uint64_t verb = 0;
  static auto troupe_fields(auto& self) { return std::tie(self.pool, self.rank, self.ticket, self.generation, self.has_groups, self.verb); }
};

void write_error(WireWriter& to, const Error& error);
[[nodiscard]] Error read_error(WireReader& from);

}  // namespace troupe::detail
