#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include <troupe/base/executor.hpp>
#include <troupe/base/log.hpp>
#include <troupe/base/result.hpp>
#include "descriptor.hpp"

namespace troupe::detail {

/// What processes are run with. The executor is stopped after the launcher, so that every callback still runs.
struct LauncherOptions {
  std::shared_ptr<Clock> clock;
  std::shared_ptr<Executor> executor;
  std::shared_ptr<Log> log;
};

/// How a process ended.
struct ExitInfo {
  std::optional<int> code;          ///< Of a process that returned or called exit.
  std::optional<int> signal;        ///< That killed it. Neither is set when the host took the status (see description).
  bool requested = false;           ///< terminate(), kill() or stop() had asked for the end before.
  std::string description;          ///< "exit code 3", "killed by SIGKILL": for the end of a sentence.
  std::string last_errors;          ///< The last lines of its stderr, at most 8 of 400 bytes.
};

/// A running or ended child. The launcher keeps it until it has ended, with or without this handle.
/// Thread: any.
class Process {
 public:
  using OnExit = std::function<void(const ExitInfo&)>;

  Process(LauncherOptions services, std::shared_ptr<WakeEvent> watcher, std::string name, pid_t pid, Descriptor pidfd);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// "pool.rank", or what ProcessSpec::name says.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  /// Runs `callback` once on the executor when the process has ended, also when it has before.
  /// Lost only when the executor was stopped first.
  void on_exit(OnExit callback);

  /// Fails with: kTimeout; the process is left as it is.
  [[nodiscard]] Result<ExitInfo> wait(Deadline until);
  [[nodiscard]] bool has_ended();

  /// SIGTERM now, SIGKILL if it still runs after `grace` (X7). Does not wait. A stopped process ends by the second.
  void terminate(Duration grace);
  /// SIGKILL. Does not wait.
  void kill();

  // for the watcher
  [[nodiscard]] int pidfd() const noexcept { return pidfd_.get(); }   ///< The watcher alone closes it.
  /// Sends the SIGKILL that is due; the time of the next one.
  [[nodiscard]] Deadline kill_when_due();
  [[nodiscard]] bool end_was_requested();
  void ended(ExitInfo info);

 private:
  void send(int signal);             ///< Under mutex_.

  const LauncherOptions services_;
  const std::string name_;
  const pid_t pid_;
  std::mutex mutex_;
  Condition ended_;
  std::shared_ptr<WakeEvent> watcher_;   ///< Until the end: a handle kept for its ExitInfo holds no descriptor.
  Descriptor pidfd_;
  Deadline kill_at_ = Deadline::never();
  bool requested_ = false;
  std::optional<ExitInfo> info_;
  std::vector<OnExit> callbacks_;
};

}  // namespace troupe::detail
