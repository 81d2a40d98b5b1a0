#include "process.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

#include <sys/syscall.h>

#include <troupe/base/text.hpp>

namespace troupe::detail {

Process::Process(LauncherOptions services, std::shared_ptr<WakeEvent> watcher, std::string name, pid_t pid, Descriptor pidfd)
    : services_(std::move(services)),
      name_(std::move(name)),
      pid_(pid),
      ended_(*services_.clock),
      watcher_(std::move(watcher)),
      pidfd_(std::move(pidfd)) {}

void Process::on_exit(OnExit callback) {
  std::unique_lock lock(mutex_);
  if (!info_) {
    callbacks_.push_back(std::move(callback));
    return;
  }
  const ExitInfo info = *info_;
  lock.unlock();
  services_.executor->post([callback = std::move(callback), info] { callback(info); });
}

Result<ExitInfo> Process::wait(Deadline until) {
  std::unique_lock lock(mutex_);
  if (ended_.wait(lock, until, [&] { return info_.has_value(); })) return *info_;
  return fail(Errc::kTimeout, text("process ", name_, " (pid ", pid_, ") still runs at the deadline"));
}

bool Process::has_ended() {
  std::lock_guard lock(mutex_);
  return info_.has_value();
}

void Process::terminate(Duration grace) {
  std::lock_guard lock(mutex_);
  if (info_) return;
  send(SIGTERM);
  kill_at_ = std::min(kill_at_, services_.clock->after(grace));
  watcher_->wake();
}

void Process::kill() {
  std::lock_guard lock(mutex_);
  send(SIGKILL);
}

void Process::send(int signal) {
  if (info_) return;
  requested_ = true;
  // by descriptor: after the end it is an error, never a signal to whoever got the number next
  if (pidfd_.is_open()) (void)::syscall(SYS_pidfd_send_signal, pidfd_.get(), signal, nullptr, 0);
}

Deadline Process::kill_when_due() {
  std::lock_guard lock(mutex_);
  if (!kill_at_.is_never() && services_.clock->now() >= kill_at_.time()) {
    kill_at_ = Deadline::never();
    send(SIGKILL);
  }
  return kill_at_;
}

bool Process::end_was_requested() {
  std::lock_guard lock(mutex_);
  return requested_;
}

void Process::ended(ExitInfo info) {
  std::vector<OnExit> callbacks;
  {
    std::lock_guard lock(mutex_);
    pidfd_.reset();
    watcher_.reset();
    info_ = info;
    callbacks.swap(callbacks_);
    ended_.notify_all();
  }
  for (auto& callback : callbacks) {
    services_.executor->post([callback = std::move(callback), info] { callback(info); });
  }
}

}  // namespace troupe::detail
