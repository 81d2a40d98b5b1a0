#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <troupe/transport/group.hpp>

#include "services.hpp"

namespace troupe::transport {

/// One member's channels to and from all others, in any backend; null at its own rank.
struct GroupEnds {
  std::string name;
  int rank = 0;
  int size = 1;
  std::vector<std::unique_ptr<Sender>> to = {};
  std::vector<std::unique_ptr<Receiver>> from = {};
};

/// The group whose collectives run over these ends: the same algorithms for every backend.
[[nodiscard]] std::unique_ptr<Group> make_group(const Context& context, GroupEnds ends);

/// One member's part of one generation: its ends, whether and why the generation has ended, and which
/// of its bytes are lent. Shared with the ends' handlers and with what is lent.
/// Thread: any.
class Member final : public std::enable_shared_from_this<Member> {
 public:
  Member(const Services& services, GroupEnds ends);

  [[nodiscard]] int rank() const noexcept { return ends_.rank; }
  [[nodiscard]] int size() const noexcept { return ends_.size; }
  [[nodiscard]] const std::string& name() const noexcept { return ends_.name; }
  [[nodiscard]] const Services& services() const noexcept { return services_; }
  [[nodiscard]] Sender& to(int peer) const { return *ends_.to[static_cast<std::size_t>(peer)]; }
  [[nodiscard]] Receiver& from(int peer) const { return *ends_.from[static_cast<std::size_t>(peer)]; }

  /// Ends the generation when a peer ends its channel to this member with a failure.
  void watch_peers();
  /// Ends the generation, here and by the channels at every peer. The first reason stands.
  void end(Error why);
  /// Leaves without breaking what the peers are in: they fail when they next need this member.
  void leave();
  [[nodiscard]] std::optional<Error> ended() const;

  /// A `keep` for bytes about to be lent: they are returned when its last copy goes (TRN-2).
  [[nodiscard]] std::shared_ptr<const void> lend(std::shared_ptr<const void> keep);
  /// Blocks until no peer can read this member's bytes (POOL-7).
  void wait_for_returns();

 private:
  struct Books;
  class Loan;
  void close_ends(const Error& why);

  const Services services_;
  const GroupEnds ends_;
  const std::shared_ptr<Books> books_;  // shared with what is lent, which may outlive the member
  mutable std::mutex mutex_;
  std::optional<Error> ended_;
};

}  // namespace troupe::transport
