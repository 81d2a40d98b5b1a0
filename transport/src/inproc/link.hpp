#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <troupe/transport/channel.hpp>

#include "parcel.hpp"
#include "services.hpp"

namespace troupe::transport::inproc {

/// What the two ends of an in-process channel share. Nothing of the user's runs, completes or is
/// destroyed under its lock (SUP-7).
/// Thread: any.
class Link final : public std::enable_shared_from_this<Link> {
 public:
  Link(const Services& services, ChannelOptions options);

  [[nodiscard]] Operation send(Message message, Deadline deadline);
  [[nodiscard]] bool writable() const;
  [[nodiscard]] Result<Incoming> receive(Deadline deadline);
  void on_message(std::function<void(Incoming)> handler);
  void on_end(std::function<void(const Error&)> handler);
  void end(Error why);
  void wait_idle();

  /// What becomes of one parcel.
  [[nodiscard]] Operation accept(const std::shared_ptr<Parcel>& parcel, const std::vector<Tensor>& targets, Deadline deadline);
  [[nodiscard]] Result<std::vector<Tensor>> refer(const std::shared_ptr<Parcel>& parcel);
  void release(Parcel& parcel);  ///< The last reference to its tensors has gone.
  void reject(Parcel& parcel, Error why);
  void expire(Parcel& parcel);

 private:
  using Lock = std::unique_lock<std::mutex>;
  using ParcelPtr = std::shared_ptr<Parcel>;
  using Handler = std::function<void(Incoming)>;

  [[nodiscard]] bool fits(const Parcel& parcel) const;
  void announce(ParcelPtr parcel);             // under the lock, as all below unless they say otherwise
  void announce_waiting();                     // what the credits allow now
  [[nodiscard]] ParcelPtr take_next();         // announced -> held
  void hold(const ParcelPtr& parcel);
  [[nodiscard]] std::vector<Tensor> retire(Parcel& parcel);  // -> done: its lent tensors, to drop unlocked
  void watch(Deadline deadline);               // a timer for the earliest deadline
  void sweep();                                // unlocked, on the executor: ends what is overdue
  void post_delivery();
  void deliver();                              // unlocked, on the executor: one message to the handler
  [[nodiscard]] Result<Transferred> pull(Parcel& parcel, const std::vector<Tensor>& targets);  // unlocked
  [[nodiscard]] Result<void> claim(Parcel& parcel, Stage stage);  // unlocked
  [[nodiscard]] Result<void> check_targets(const Parcel& parcel, const std::vector<Tensor>& targets) const;
  [[nodiscard]] Error overdue(const Parcel& parcel) const;
  template <class Visit>
  void for_each_open(Visit visit);

  const Services services_;
  const ChannelOptions options_;
  mutable std::mutex mutex_;
  Condition arrived_;  // a message, or the end
  Condition idle_;     // no pull, no running handler
  std::deque<ParcelPtr> waiting_;
  std::deque<ParcelPtr> announced_;
  std::vector<ParcelPtr> held_;  // held, pulling or referenced
  std::int64_t open_messages_ = 0;  // announced and not done: what the credits limit (TRN-4)
  std::int64_t open_bytes_ = 0;
  std::uint64_t next_sequence_ = 0;
  int pulls_ = 0;
  std::optional<Error> ended_;  // sticky (TRN-5)
  std::shared_ptr<const Handler> handler_;
  std::function<void(const Error&)> end_handler_;
  bool delivery_posted_ = false;
  std::thread::id delivering_{};
  Deadline watched_ = Deadline::never();
  Executor::TimerId timer_ = 0;
};

}  // namespace troupe::transport::inproc
