#include "watcher.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>

#include <troupe/base/text.hpp>

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

namespace troupe::detail {
namespace {

constexpr std::size_t kLastLines = 8;
constexpr std::size_t kLastLineBytes = 400;
/// Per stream and turn: whoever floods its stdout does not keep the others waiting.
constexpr std::size_t kTurnBytes = 64 * 1024;

/// Asks for the end of one process of ours. True when it has ended; `info` has its status when `known`.
bool ask(int pidfd, int options, siginfo_t& info, bool& known) {
  info = {};
  known = ::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pidfd), &info, WEXITED | WNOHANG | options) == 0;
  return !known || info.si_pid != 0;
}

ExitInfo describe(const siginfo_t& status, bool known) {
  ExitInfo out;
  if (!known) {
    out.description = "ended; its status is unknown because the host waits for every child (SIGCHLD ignored, or waitpid(-1))";
  } else if (status.si_code == CLD_EXITED) {
    out.code = status.si_status;
    out.description = text("exit code ", status.si_status);
  } else {
    out.signal = status.si_status;
    const char* name = ::sigabbrev_np(status.si_status);
    out.description = name != nullptr ? text("killed by SIG", name) : text("killed by signal ", status.si_status);
    if (status.si_code == CLD_DUMPED) out.description += " (core dumped)";
  }
  return out;
}

}  // namespace

bool OutputStream::read(std::size_t most, const LineSplitter::Emit& emit) {
  std::array<char, 16 * 1024> buffer;   // NOLINT: filled by read
  for (std::size_t done = 0; done < most;) {
    const ssize_t got = ::read(pipe_.get(), buffer.data(), std::min(buffer.size(), most - done));
    if (got < 0) return false;   // nothing now; the descriptor is ours, so nothing else can be wrong with it
    if (got == 0) {
      lines_.finish(emit);
      pipe_.reset();
      return false;
    }
    lines_.feed({buffer.data(), static_cast<std::size_t>(got)}, emit);
    done += static_cast<std::size_t>(got);
  }
  return true;
}

void OutputStream::finish(const LineSplitter::Emit& emit) {
  if (!pipe_.is_open()) return;
  // What was written before fits in the pipe; someone who inherited it may write for ever.
  const int capacity = ::fcntl(pipe_.get(), F_GETPIPE_SZ);
  (void)read(capacity > 0 ? static_cast<std::size_t>(capacity) : kTurnBytes, emit);
  lines_.finish(emit);
  pipe_.reset();
}

void Watcher::add(std::shared_ptr<Process> process, Descriptor output, Descriptor errors) {
  {
    std::lock_guard lock(mutex_);
    added_.push_back({std::move(process), {std::move(output), LogLevel::kInfo}, {std::move(errors), LogLevel::kWarning}, {}});
  }
  wake_->wake();
}

void Watcher::finish() {
  {
    std::lock_guard lock(mutex_);
    finishing_ = true;
  }
  wake_->wake();
}

void Watcher::run() {
  std::vector<pollfd> polled;
  while (take_new()) {
    wait(polled);
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      Entry& entry = entries_[i];
      if (polled[3 * i + 1].revents != 0) read(entry, entry.output);
      if (polled[3 * i + 2].revents != 0) read(entry, entry.errors);
    }
    std::size_t at = 0;
    std::erase_if(entries_, [&](Entry& entry) { return polled[3 * at++].revents != 0 && ended(entry); });
  }
}

/// False when there is nothing more to do, ever.
bool Watcher::take_new() {
  std::lock_guard lock(mutex_);
  std::ranges::move(added_, std::back_inserter(entries_));
  added_.clear();
  return !finishing_ || !entries_.empty();
}

/// The one place where this library waits in the kernel for something other than its own threads.
void Watcher::wait(std::vector<pollfd>& polled) {
  polled.clear();
  Deadline next = Deadline::never();
  for (auto& entry : entries_) {
    next = std::min(next, entry.process->kill_when_due());
    const int pidfd = entry.process->pidfd();
    polled.push_back({pidfd, POLLIN, 0});
    polled.push_back({entry.output.fd(), POLLIN, 0});
    polled.push_back({entry.errors.fd(), POLLIN, 0});
    if (pidfd < 0) next = Deadline::at(TimePoint{});   // it ended before it could be watched
  }
  polled.push_back({wake_->fd(), POLLIN, 0});
  const Duration left = std::max(Duration::zero(), next.time() - services_.clock->now());
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
  const timespec timeout{static_cast<time_t>(seconds.count()), static_cast<long>((left - seconds).count())};
  if (::ppoll(polled.data(), polled.size(), next.is_never() ? nullptr : &timeout, nullptr) <= 0) {
    for (auto& one : polled) one.revents = 0;
  }
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (polled[3 * i].fd < 0) polled[3 * i].revents = POLLIN;
  }
  wake_->clear();
}

void Watcher::forward(Entry& entry, OutputStream& stream, std::string line) {
  try {
    services_.log->write(stream.level(), text("[", entry.process->name(), " ", entry.process->pid(), "] ", line));
  } catch (...) {
    // the host's sink threw: the line is lost, and there is no one else to tell; the watch goes on
  }
  if (&stream != &entry.errors) return;
  if (line.size() > kLastLineBytes) line = line.substr(0, kLastLineBytes) + "...";
  entry.last_errors.push_back(std::move(line));
  if (entry.last_errors.size() > kLastLines) entry.last_errors.pop_front();
}

void Watcher::read(Entry& entry, OutputStream& stream) {
  (void)stream.read(kTurnBytes, [&](std::string line) { forward(entry, stream, std::move(line)); });
}

/// Takes the process from the kernel and tells who waits; false when it runs after all.
bool Watcher::ended(Entry& entry) {
  const int pidfd = entry.process->pidfd();
  siginfo_t status{};
  bool known = false;
  if (pidfd >= 0) {
    if (!ask(pidfd, WNOWAIT, status, known)) return false;
    // While it is a zombie its number names its group and nothing else: what it left behind goes with it (X1).
    if (known) ::kill(-entry.process->pid(), SIGKILL);
    if (known) (void)ask(pidfd, 0, status, known);
  }
  for (OutputStream* stream : {&entry.output, &entry.errors}) {
    stream->finish([&](std::string line) { forward(entry, *stream, std::move(line)); });
  }
  ExitInfo info = describe(status, known);
  info.requested = entry.process->end_was_requested();
  for (const auto& line : entry.last_errors) info.last_errors += (info.last_errors.empty() ? "" : "\n") + line;
  entry.process->ended(std::move(info));
  return true;
}

}  // namespace troupe::detail
