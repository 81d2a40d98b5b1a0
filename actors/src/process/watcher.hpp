#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "lines.hpp"
#include "process.hpp"

struct pollfd;

namespace troupe::detail {

/// One of the two streams a process writes.
class OutputStream {
 public:
  OutputStream(Descriptor pipe, LogLevel level) : pipe_(std::move(pipe)), level_(level) {}

  [[nodiscard]] int fd() const noexcept { return pipe_.get(); }
  /// Reads what is there, `most` bytes or less, and closes at the end of the stream; false when nothing is left for now.
  bool read(std::size_t most, const LineSplitter::Emit& emit);
  /// Reads all that was written before now, emits a line that was not ended, and closes.
  void finish(const LineSplitter::Emit& emit);
  [[nodiscard]] LogLevel level() const noexcept { return level_; }

 private:
  Descriptor pipe_;
  LogLevel level_;
  LineSplitter lines_;
};

/// Waits for the output and the end of processes: one thread, one poll, no wake-up without a reason.
/// Children of the host are never waited for: each wait names one process of ours, by its pidfd.
class Watcher {
 public:
  Watcher(LauncherOptions services, std::shared_ptr<WakeEvent> wake) : services_(std::move(services)), wake_(std::move(wake)) {}

  /// From now on `process` is watched. Thread: any.
  void add(std::shared_ptr<Process> process, Descriptor output, Descriptor errors);
  /// Lets run() return when nothing is left to watch. Thread: any.
  void finish();
  /// The body of the thread.
  void run();

 private:
  struct Entry {
    std::shared_ptr<Process> process;
    OutputStream output, errors;
    std::deque<std::string> last_errors;
  };

  [[nodiscard]] bool take_new();
  void wait(std::vector<pollfd>& polled);
  void forward(Entry& entry, OutputStream& stream, std::string line);
  void read(Entry& entry, OutputStream& stream);
  [[nodiscard]] bool ended(Entry& entry);

  const LauncherOptions services_;
  const std::shared_ptr<WakeEvent> wake_;
  std::mutex mutex_;
  std::vector<Entry> added_;
  bool finishing_ = false;
  std::vector<Entry> entries_;   ///< Of run() alone.
};

}  // namespace troupe::detail
