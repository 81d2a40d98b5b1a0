#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "incoming.hpp"
#include "node.hpp"
#include "operation.hpp"

namespace troupe::transport::ucx {

class Inbox;

/// One message on its way in: what the receiver's Incoming stands for. Parts are UCX's until pulled or released.
class Parcel final : public Incoming::Source, public std::enable_shared_from_this<Parcel> {
 public:
  explicit Parcel(std::shared_ptr<Inbox> inbox) : inbox_(std::move(inbox)) {}

  [[nodiscard]] std::span<const std::byte> meta() const override { return announcement.meta; }
  [[nodiscard]] const std::vector<TensorDesc>& tensors() const override { return announcement.tensors; }
  [[nodiscard]] std::uint64_t sequence() const override { return number; }
  [[nodiscard]] Operation accept(std::vector<Tensor> targets, Deadline deadline) override;
  [[nodiscard]] Result<std::vector<Tensor>> accept_by_reference() override;
  void reject(Error why) override;

  struct Part {
    void* descriptor = nullptr;
    std::int64_t bytes = 0;
  };
  bool is_announced = false;
  Announcement announcement = {};          ///< Constant once announced, as the two below.
  Packing packing = {};
  std::vector<std::int64_t> sizes = {};    ///< Of its parts, in their order.
  std::map<std::uint64_t, Part> parts = {};
  std::uint64_t wire_sequence = 0;
  std::uint64_t number = 0;                ///< For the receiver: counts what it was given.
  bool is_pulling = false;
  bool is_over = false;                    ///< Answered, or taken back by the sender.

 private:
  const std::shared_ptr<Inbox> inbox_;
};

/// The receiving end of a channel.
/// Thread: any, but where it says otherwise.
class Inbox final : public std::enable_shared_from_this<Inbox> {
 public:
  Inbox(Node& node, Peer& peer, std::uint64_t number, ChannelOptions options);

  [[nodiscard]] Result<Incoming> receive(Deadline deadline);
  void on_message(std::function<void(Incoming)> handler);
  void on_end(std::function<void(const Error&)> handler);
  void end(const Error& why, bool tell);
  void wait_idle();
  [[nodiscard]] Operation accept(const std::shared_ptr<Parcel>& parcel, std::vector<Tensor> targets, Deadline deadline);
  void reject(const std::shared_ptr<Parcel>& parcel, Error why);

  [[nodiscard]] std::uint64_t peer() const noexcept { return peer_.node; }
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }

  // on the progress thread
  void announced(std::uint64_t sequence, std::span<const std::byte> bytes);
  void offered(const Head& head, void* descriptor, std::size_t bytes);
  void cancelled(std::uint64_t sequence, const Error& why);

 private:
  using ParcelPtr = std::shared_ptr<Parcel>;
  using Handler = std::function<void(Incoming)>;
  struct Pull;

  [[nodiscard]] ParcelPtr at(std::uint64_t sequence);
  void deliver_ready();
  [[nodiscard]] std::optional<Error> broken(const Parcel& parcel) const;
  [[nodiscard]] Result<void> check_targets(const Parcel& parcel, const std::vector<Tensor>& targets) const;
  void start(const std::shared_ptr<Pull>& pull);
  void part_done(const std::shared_ptr<Pull>& pull, ucs_status_t status);
  void finish(const std::shared_ptr<Pull>& pull);
  void answer(Parcel& parcel, const Control& control);
  void release(Parcel& parcel);
  [[nodiscard]] ParcelPtr take_next();   // under the lock, as the next
  void post_delivery();
  void deliver();
  [[nodiscard]] bool is_idle() const;

  Node& node_;
  Peer& peer_;
  const std::uint64_t number_;
  const ChannelOptions options_;
  // the progress thread's
  std::map<std::uint64_t, ParcelPtr> messages_;   ///< Not answered yet.
  std::uint64_t next_wire_ = 0;
  // shared
  std::mutex mutex_;
  Condition arrived_;
  Condition idle_;
  std::deque<ParcelPtr> ready_;
  std::uint64_t next_number_ = 0;
  int pulls_ = 0;
  std::optional<Error> ended_;
  std::shared_ptr<const Handler> handler_;
  std::function<void(const Error&)> end_handler_;
  bool delivery_posted_ = false;
  std::thread::id delivering_{};
};

}  // namespace troupe::transport::ucx
