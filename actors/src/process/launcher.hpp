#pragma once

#include <memory>

#include "process.hpp"
#include "spawn.hpp"

namespace troupe::detail {

/// Starts the programs of one runtime, and ends them with it. Two threads, "troupe-spawn" and "troupe-watch":
/// a program that is slow to start, or a log sink that is slow to write, does not hold up the other.
/// What a child writes goes to the log by line as "[name pid] line", stdout as information, stderr as a warning;
/// the order within a stream is kept, not that between the two. A child that writes faster than the log takes it
/// waits in its write.
/// Thread: any, not the log's sink.
class Launcher {
 public:
  /// Fails with: kUnavailable on a kernel without pidfds (before 5.4), kResourcesBusy (descriptors, threads).
  [[nodiscard]] static Result<std::unique_ptr<Launcher>> create(LauncherOptions options);
  ~Launcher();   ///< stop() with two seconds, unless it was called.
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  /// Returns when the program runs. A descriptor of the child is lent until then.
  /// Fails with: what spawn() fails with; kTimeout after start_timeout (if it starts later, it is killed);
  /// kClosed after stop(); kUnavailable in a process that was forked from the launcher's.
  [[nodiscard]] Result<std::shared_ptr<Process>> start(ProcessSpec spec);

  /// Refuses new starts, sends SIGTERM to what runs and, after half of the time left but 2 s at most, SIGKILL;
  /// reaps all and joins both threads. Takes 1.5 s past the deadline at most. Idempotent.
  /// Fails with: kTimeout, and lists what the kernel did not end or which thread is stuck (a log sink that does not
  /// return): both are left, and clear up by themselves if they ever go on (SUP-8).
  [[nodiscard]] Result<void> stop(Deadline until);

 private:
  struct State;
  explicit Launcher(std::shared_ptr<State> state) : state_(std::move(state)) {}
  void start_threads();

  std::shared_ptr<State> state_;   ///< Shared with both threads, which may have to be left.
};

}  // namespace troupe::detail
