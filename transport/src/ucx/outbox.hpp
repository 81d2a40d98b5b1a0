#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "node.hpp"
#include "operation.hpp"

namespace troupe::transport::ucx {

class Outbox;

/// One message on its way out: the sender's operation, and the bytes it lends.
class Outgoing final : public Operation::State, public std::enable_shared_from_this<Outgoing> {
 public:
  Outgoing(const Services& services, std::shared_ptr<Outbox> outbox, Message m, Deadline deadline)
      : State(services, deadline), message(std::move(m)), credit_bytes(message.bytes()), outbox_(std::move(outbox)) {}

  Message message;
  const std::int64_t credit_bytes;
  std::uint64_t sequence = 0;
  int parts_in_flight = 0;   ///< UCX may still read them. Progress thread.

 protected:
  void expire() override;

 private:
  const std::shared_ptr<Outbox> outbox_;
};

/// The sending end of a channel.
/// Thread: any, but where it says otherwise.
class Outbox final : public std::enable_shared_from_this<Outbox> {
 public:
  Outbox(Node& node, Peer& peer, std::uint64_t number, ChannelOptions options);

  [[nodiscard]] Operation send(Message message, Deadline deadline);
  [[nodiscard]] bool writable() const;
  /// Ends it here; `tell`: the other end too.
  void end(const Error& why, bool tell);
  void wait_idle();
  void expire(Outgoing& outgoing);

  [[nodiscard]] std::uint64_t peer() const noexcept { return peer_.node; }
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }

  // on the progress thread
  void answered(std::uint64_t sequence, const Control& control);
  void sweep();

 private:
  using OutgoingPtr = std::shared_ptr<Outgoing>;
  [[nodiscard]] bool fits(const Outgoing& outgoing) const;                 // under the lock
  void take(const OutgoingPtr& outgoing);                                  // under the lock: credits and its number
  void transmit(const OutgoingPtr& outgoing);
  void offer(const OutgoingPtr& outgoing, std::uint64_t part, const void* data, std::int64_t size, std::shared_ptr<const void> keep);
  void part_done(const OutgoingPtr& outgoing);
  [[nodiscard]] Error overdue(const Outgoing& outgoing) const;

  Node& node_;
  Peer& peer_;
  const std::uint64_t number_;
  const ChannelOptions options_;
  mutable std::mutex mutex_;
  Condition idle_;
  std::deque<OutgoingPtr> waiting_;
  std::map<std::uint64_t, OutgoingPtr> open_;   ///< Announced and not answered.
  std::int64_t open_bytes_ = 0;
  std::uint64_t next_ = 0;
  int parts_ = 0;                               ///< Of all messages, that UCX may read.
  std::optional<Error> ended_;
};

}  // namespace troupe::transport::ucx
