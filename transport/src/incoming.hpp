#pragma once

#include <troupe/transport/channel.hpp>

namespace troupe::transport {

/// What a backend keeps of an announced message. Exactly one of accept, accept_by_reference (when it
/// succeeds) and reject is called, once.
class Incoming::Source {
 public:
  virtual ~Source() = default;

  [[nodiscard]] virtual std::span<const std::byte> meta() const = 0;
  [[nodiscard]] virtual const std::vector<TensorDesc>& tensors() const = 0;
  [[nodiscard]] virtual std::uint64_t sequence() const = 0;
  [[nodiscard]] virtual Operation accept(std::vector<Tensor> targets, Deadline deadline) = 0;
  [[nodiscard]] virtual Result<std::vector<Tensor>> accept_by_reference() = 0;
  virtual void reject(Error why) = 0;
};

}  // namespace troupe::transport
