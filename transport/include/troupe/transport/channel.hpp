#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <troupe/base/executor.hpp>
#include <troupe/base/log.hpp>
#include <troupe/transport/memory.hpp>
#include <troupe/transport/operation.hpp>

namespace troupe::transport {

/// What a backend runs on; shared by every channel and group of a runtime. It outlives them, their
/// operations and what was received: the executor is not kept alive by any of those.
struct Context {
  std::shared_ptr<Clock> clock;
  std::shared_ptr<Executor> executor;
  std::shared_ptr<Log> log;
  std::shared_ptr<TransferCounters> counters;
};

/// A context with the system clock, its own executor and log: for tests and small programs.
[[nodiscard]] Context make_context();

/// Meta bytes (small, moved with the descriptor) and any number of tensors, one operation together.
struct Message {
  std::vector<std::byte> meta = {};
  std::vector<Tensor> tensors = {};
  [[nodiscard]] std::int64_t bytes() const noexcept;  ///< Tensors, packed, and meta: what credits count.
};

/// A message that has been announced but not pulled: the receiver sees the descriptors, chooses memory
/// and accepts, or rejects. Dropping it rejects with kClosed. Move-only.
class Incoming {
 public:
  class Source;
  explicit Incoming(std::shared_ptr<Source> source);
  Incoming(Incoming&&) noexcept;
  Incoming& operator=(Incoming&&) noexcept;
  ~Incoming();

  [[nodiscard]] std::span<const std::byte> meta() const;
  [[nodiscard]] const std::vector<TensorDesc>& tensors() const;
  [[nodiscard]] std::uint64_t sequence() const;  ///< From 0, without gaps, per channel and incarnation.

  /// Pulls into `targets`, one per tensor, equal dtype and shape, any strides. The sender's operation
  /// completes when the pull has ended (an acknowledgement, not "buffered").
  /// Fails with: kMismatch (nothing was pulled, the sender sees it too), kPeerLost, kClosed, kTimeout.
  [[nodiscard]] Operation accept(std::vector<Tensor> targets, Deadline deadline) &&;

  /// Takes the sender's tensors by reference, without a copy; same process only: else kUnavailable, and
  /// the message can still be accepted. The bytes stay lent until the last returned `keep` is dropped:
  /// then the sender's operation completes. If that ended before (deadline, close), `keep` still holds
  /// the bytes, but the sender may have written into them.
  [[nodiscard]] Result<std::vector<Tensor>> accept_by_reference() &&;

  /// Refuses it; the sender's operation fails with `why`.
  void reject(Error why) &&;

 private:
  std::shared_ptr<Source> source_;
};

struct ChannelOptions {
  std::string name = "channel";          ///< For messages and logs.
  std::int64_t credit_messages = 64;     ///< Announced and not yet acknowledged (TRN-4).
  std::int64_t credit_bytes = 1 << 30;   ///< One message larger than this may pass alone.
};

/// The sending end. One-way, ordered (TRN-1); buffers are lent until the operation completes.
/// Thread: any.
class Sender {
 public:
  virtual ~Sender() = default;
  /// Announces `message`. Past the credits it waits in a local queue, and writable() says so (TRN-4).
  /// Fails with: kTimeout, kClosed, kPeerLost, kInvalidArgument (a broken description), kUnavailable (not
  /// host memory), and what the receiver rejected it with.
  /// After a deadline `keep` is held until the peer can no longer read the bytes (quarantine, TRN-2).
  [[nodiscard]] virtual Operation send(Message message, Deadline deadline) = 0;
  [[nodiscard]] virtual bool writable() const = 0;
  /// Ends pending operations with `why` and refuses later ones; sticky (TRN-5). Idempotent; does not
  /// block. A pull in progress goes on: its operation completes when it has ended (TRN-2).
  virtual void end(Error why) = 0;
  /// end(), then waits for the pulls in progress: no peer copies from this end's buffers any more.
  virtual void close(Error why = {Errc::kClosed, "channel closed", {}, nullptr, false}) = 0;
};

/// The receiving end. Use either receive() or on_message(), not both.
/// Thread: any.
class Receiver {
 public:
  virtual ~Receiver() = default;
  /// The next announced message, in order.
  /// Fails with: kTimeout, kClosed, kPeerLost.
  [[nodiscard]] virtual Result<Incoming> receive(Deadline deadline) = 0;
  /// Calls `handler` on the executor for each announced message from now on, in order.
  virtual void on_message(std::function<void(Incoming)> handler) = 0;
  /// Calls `handler` on the executor once, with the reason, when either end has ended the channel.
  virtual void on_end(std::function<void(const Error&)> handler) = 0;
  virtual void end(Error why) = 0;  ///< As Sender::end().
  /// end(), then waits for pulls in progress and a running on_message handler, unless called from it.
  virtual void close(Error why = {Errc::kClosed, "channel closed", {}, nullptr, false}) = 0;
};

struct ChannelPair {
  std::unique_ptr<Sender> sender;
  std::unique_ptr<Receiver> receiver;
};

/// Both ends in this process, host memory: the reference that every other backend must match.
/// Fails with: kInvalidArgument when a credit is < 1.
[[nodiscard]] Result<ChannelPair> open_inproc(const Context& context, const ChannelOptions& options = {});

}  // namespace troupe::transport
