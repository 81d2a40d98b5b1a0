#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <troupe/base/clock.hpp>
#include <troupe/base/result.hpp>

namespace troupe::transport {

/// What an operation did, and by which path (TRN-6).
struct Transferred {
  std::int64_t bytes = 0;    ///< Of the tensors, packed.
  const char* via = "";      ///< reference, peer, inproc, shm, cma, cuda_ipc, nccl, tcp, rdma.
  std::int64_t copies = 0;   ///< Passes over the bytes, packing included.
};

/// One asynchronous operation. Completes exactly once, also after close, failure and deadline (TRN-2).
/// Either wait() for it on the caller's own thread, or then() a function that runs on the executor and
/// never inside the call that started the operation (SUP-7). Dropping the handle does not cancel.
/// Thread: any.
class Operation {
 public:
  using Done = std::function<void(const Result<Transferred>&)>;
  class State;

  Operation() = default;
  explicit Operation(std::shared_ptr<State> state) : state_(std::move(state)) {}

  [[nodiscard]] bool done() const;
  /// Blocks until complete: the operation's own deadline bounds it.
  [[nodiscard]] Result<Transferred> wait() const;
  /// Blocks until complete or `until`, whichever is first; true when complete. Ends nothing.
  [[nodiscard]] bool wait_until(Deadline until) const;
  /// At most one function per operation. Must not block or throw.
  void then(Done done) const;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace troupe::transport
