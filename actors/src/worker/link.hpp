#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include <troupe/actors/wire.hpp>
#include <troupe/base/clock.hpp>
#include <troupe/base/result.hpp>
#include "process/descriptor.hpp"

namespace troupe::detail {

/// One end of a stream of frames between two processes on one host. The kernel tells of the other's death: the stream
/// ends (SUP-3).
/// Thread: send() and end() any.
class Link {
 public:
  /// On the link's own thread; must not block for long.
  using OnFrame = std::function<void(std::span<const std::byte>)>;
  /// Once, on the link's own thread, when nothing more will come.
  using OnEnd = std::function<void(const Error&)>;

  Link(Clock& clock, Descriptor socket, std::string name);
  ~Link();   ///< end(), and joins its thread, unless on it.
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  void start(OnFrame on_frame, OnEnd on_end);
  /// Sends one frame whole. A peer that does not read for 5 s is given up.
  /// Fails with: kLimit for a frame past 1 MiB (nothing was sent), kPeerLost when the stream has ended or ends so.
  [[nodiscard]] Result<void> send(std::span<const std::byte> frame);
  /// Both directions, now.
  void end();

 private:
  void read();
  [[nodiscard]] Result<std::size_t> read_size();
  [[nodiscard]] Result<void> read_exactly(std::span<std::byte> target);
  [[nodiscard]] Result<void> write_all(std::span<const std::byte> bytes);

  Clock& clock_;
  const Descriptor socket_;
  const std::string name_;
  std::mutex sending_;
  std::atomic<bool> ended_{false};
  OnFrame on_frame_;
  OnEnd on_end_;
  Thread thread_;
};

/// Two connected stream sockets, close-on-exec.
/// Fails with: kResourcesBusy.
struct SocketPair {
  Descriptor first, second;
};
[[nodiscard]] Result<SocketPair> socket_pair();

}  // namespace troupe::detail
