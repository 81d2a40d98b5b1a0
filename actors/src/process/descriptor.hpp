#pragma once

#include <memory>
#include <utility>

#include <unistd.h>

#include <troupe/base/result.hpp>

namespace troupe::detail {

/// A file descriptor that is closed with its handle. Thread: one at a time.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }

  /// -1 when there is none, which poll(2) skips.
  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }
  void reset() noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

/// Ends the poll of a thread from any other. Thread: any.
class WakeEvent {
 public:
  /// Fails with: kResourcesBusy when the process has no descriptor left.
  [[nodiscard]] static Result<std::shared_ptr<WakeEvent>> create();
  explicit WakeEvent(Descriptor event) noexcept : event_(std::move(event)) {}

  void wake() noexcept;
  void clear() noexcept;
  [[nodiscard]] int fd() const noexcept { return event_.get(); }

 private:
  Descriptor event_;
};

/// An Error for what the operating system refused: kResourcesBusy at a limit of descriptors or processes,
/// kOutOfMemory, else kIo; `what` and what to do are in the message.
[[nodiscard]] Error system_error(int number, const std::string& what);

}  // namespace troupe::detail
