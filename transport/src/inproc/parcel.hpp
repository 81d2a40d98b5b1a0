#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "incoming.hpp"
#include "operation.hpp"

namespace troupe::transport::inproc {

class Link;

/// Where a message is. Changes under the link's lock only.
enum class Stage : std::uint8_t {
  kWaiting,     ///< Past the credits, in the sender's local queue.
  kAnnounced,   ///< For the receiver to take.
  kHeld,        ///< An Incoming holds it.
  kPulling,     ///< A thread copies from the lent bytes.
  kReferenced,  ///< The receiver reads the lent bytes in place.
  kDone,        ///< Nobody can touch the lent bytes any more.
};

/// One message on its way: the sender's operation, and what the receiver's Incoming stands for.
class Parcel final : public Operation::State,
                     public Incoming::Source,
                     public std::enable_shared_from_this<Parcel> {
 public:
  Parcel(const Services& services, std::shared_ptr<Link> link, Message message, Deadline deadline);

  [[nodiscard]] std::span<const std::byte> meta() const override { return message_.meta; }
  [[nodiscard]] const std::vector<TensorDesc>& tensors() const override { return descs_; }
  [[nodiscard]] std::uint64_t sequence() const override { return sequence_; }
  [[nodiscard]] Operation accept(std::vector<Tensor> targets, Deadline deadline) override;
  [[nodiscard]] Result<std::vector<Tensor>> accept_by_reference() override;
  void reject(Error why) override;

 protected:
  void expire() override;

 private:
  friend class Link;

  const std::shared_ptr<Link> link_;  // no cycle for long: end() takes every parcel out of the link
  Message message_;           // meta and descs_ never change; tensors go when the parcel is done
  std::vector<TensorDesc> descs_;
  std::int64_t credit_bytes_;
  std::uint64_t sequence_ = 0;  // written before the receiver can see the parcel
  Stage stage_ = Stage::kWaiting;
  std::size_t slot_ = 0;  // where Link::held_ has it
};

}  // namespace troupe::transport::inproc
