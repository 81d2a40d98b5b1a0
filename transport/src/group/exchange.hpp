#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <troupe/transport/group.hpp>

#include "member.hpp"
#include "wire.hpp"

namespace troupe::transport {

/// What a member has sent without lending bytes: nobody waits for it, but leaving does.
using Loose = std::vector<Operation>;

/// One collective of one member: what it offers to each peer, what it takes from each. Offers first, then
/// meet(), then takes and pulls, then settle(). Destroyed after a failure has ended the generation, so
/// that peers see the failure rather than a dropped message.
/// Thread: the rank's own.
class Exchange {
 public:
  Exchange(Member& member, Header header, Deadline deadline, GroupTraffic& traffic, Loose& loose);

  /// Sends this call's header with `tensor` to `peer`; small tensors are copied, others lent.
  [[nodiscard]] Result<void> offer(int peer, const Tensor& tensor);

  /// Waits for every peer's header and compares all.
  [[nodiscard]] Result<void> meet();

  /// Waits for the reduced chunk from `peer`.
  [[nodiscard]] Result<void> meet_again(int peer);
  void next_phase() { header_.phase = kReduced; }

  /// Copies what `peer` offered into `target`.
  [[nodiscard]] Result<void> pull(int peer, const Tensor& target);

  /// Reduces what the peers offered and `own`, by rank, into `out`.
  [[nodiscard]] Result<void> reduce(const Tensor& own, const Tensor& out);

  /// Waits until every peer has taken what was lent to it.
  [[nodiscard]] Result<void> settle();

 private:
  [[nodiscard]] Result<Tensor> read(int peer, const Tensor& like);
  [[nodiscard]] Result<Header> receive(int peer);
  [[nodiscard]] tl::unexpected<Error> lost(int peer, Error why) const;

  Member& member_;
  Header header_;
  const Deadline deadline_;
  GroupTraffic& traffic_;
  Loose& loose_;
  std::vector<std::optional<Incoming>> incoming_;  // by rank
  std::vector<std::pair<int, Operation>> lent_;
};

}  // namespace troupe::transport
