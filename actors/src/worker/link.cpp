#include "link.hpp"

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <troupe/base/text.hpp>
#include "protocol.hpp"

namespace troupe::detail {
namespace {

constexpr timeval kSendPatience{.tv_sec = 5, .tv_usec = 0};

Error lost(const std::string& name, const std::string& why) { return {.code = Errc::kPeerLost, .message = text(name, ": ", why)}; }

}  // namespace

Link::Link(Clock& clock, Descriptor socket, std::string name) : clock_(clock), socket_(std::move(socket)), name_(std::move(name)) {
  (void)setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &kSendPatience, sizeof kSendPatience);
}

Link::~Link() {
  end();
  if (!thread_.joinable()) return;
  if (thread_.is_current()) {
    thread_.leave();
  } else {
    thread_.join();
  }
}

void Link::start(OnFrame on_frame, OnEnd on_end) {
  on_frame_ = std::move(on_frame);
  on_end_ = std::move(on_end);
  thread_ = Thread(clock_, "troupe-link", [this] { read(); });
}

void Link::end() {
  ended_ = true;
  (void)shutdown(socket_.get(), SHUT_RDWR);   // wakes its own thread
}

void Link::read() {
  std::vector<std::byte> frame;
  for (;;) {
    const auto size = read_size();
    if (!size) return end(), on_end_(size.error());
    frame.resize(*size);
    if (auto ok = read_exactly(frame); !ok) return end(), on_end_(ok.error());
    try {
      on_frame_(frame);
    } catch (const Exception& bad) {
      return end(), on_end_(caused_by(bad.error(), Errc::kBadData, text(name_, " sent what can't be read")));
    }
  }
}

Result<std::size_t> Link::read_size() {
  std::uint32_t size = 0;
  if (auto ok = read_exactly(std::as_writable_bytes(std::span(&size, 1))); !ok) return fail(std::move(ok.error()));
  if (size == 0 || size > kLargestFrame) return fail(Errc::kBadData, text(name_, ": a frame of ", size, " bytes; 1 to ", kLargestFrame, " were expected"));
  return size;
}

Result<void> Link::read_exactly(std::span<std::byte> target) {
  while (!target.empty()) {
    const ssize_t got = recv(socket_.get(), target.data(), target.size(), 0);
    if (got > 0) {
      target = target.subspan(static_cast<std::size_t>(got));
    } else if (got == 0) {
      return fail(lost(name_, "the stream has ended"));
    } else if (errno != EINTR) {
      return fail(lost(name_, std::strerror(errno)));
    }
  }
  return {};
}

Result<void> Link::write_all(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (errno != EINTR) {
      return fail(lost(name_, errno == EAGAIN ? text("it has not read for ", kSendPatience.tv_sec, " s") : std::strerror(errno)));
    }
  }
  return {};
}

Result<void> Link::send(std::span<const std::byte> frame) {
  if (frame.size() > kLargestFrame) return fail(Errc::kLimit, text(name_, ": a control message of ", frame.size(), " bytes; ", kLargestFrame, " is the most"));
  const auto size = static_cast<std::uint32_t>(frame.size());
  std::vector<std::byte> whole(sizeof size + frame.size());
  std::memcpy(whole.data(), &size, sizeof size);
  std::memcpy(whole.data() + sizeof size, frame.data(), frame.size());
  const std::lock_guard lock(sending_);
  if (ended_) return fail(lost(name_, "the stream has ended"));
  auto sent = write_all(whole);
  if (!sent) end();   // half a frame may be out: nothing can follow it
  return sent;
}

Result<SocketPair> socket_pair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return fail(Errc::kResourcesBusy, text("no socket for a worker: ", std::strerror(errno)));
  return SocketPair{Descriptor(ends[0]), Descriptor(ends[1])};
}

}  // namespace troupe::detail
