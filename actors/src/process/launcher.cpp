#include "launcher.hpp"

#include <cerrno>
#include <deque>
#include <system_error>
#include <utility>
#include <vector>

#include <sys/syscall.h>

#include <troupe/base/text.hpp>
#include "watcher.hpp"

namespace troupe::detail {
namespace {

constexpr Duration kMostGrace = std::chrono::seconds(2);
/// SIGKILL and the end of a thread take a moment even when the caller's time is over.
constexpr Duration kLastMoment = std::chrono::milliseconds(500);

struct Request {
  ProcessSpec spec;
  std::vector<std::string> environment;
  std::optional<Result<std::shared_ptr<Process>>> answer;
  bool abandoned = false;   ///< Its caller has gone: what starts now is killed.
};

}  // namespace

struct Launcher::State {
  State(LauncherOptions o, std::shared_ptr<WakeEvent> w) : services(std::move(o)), wake(std::move(w)), watcher(services, wake), changed(*services.clock) {}

  const LauncherOptions services;
  const std::shared_ptr<WakeEvent> wake;
  const pid_t owner = ::getpid();
  Watcher watcher;
  std::mutex mutex;
  Condition changed;
  std::deque<std::shared_ptr<Request>> queue;
  std::vector<std::shared_ptr<Process>> processes;   ///< That may still run.
  bool closed = false;       ///< No new starts.
  bool finishing = false;    ///< Every process has ended: the spawning thread may, too.
  bool spawner_ended = false;
  bool watcher_ended = false;
  std::mutex joining;        ///< Two threads may stop at the same time; one joins.
  Thread spawner_thread;
  Thread watcher_thread;

  void spawn_all();
  void answer(Request& request, Result<Spawned> spawned);
  [[nodiscard]] std::vector<std::string> end_processes(Deadline until);
  [[nodiscard]] bool end_thread(Thread& thread, const bool& has_ended, Deadline until);
};

/// The body of the spawning thread. It outlives every process it started, because their death signal
/// follows this thread, not the process (SUP-9).
void Launcher::State::spawn_all() {
  std::unique_lock lock(mutex);
  for (;;) {
    (void)changed.wait(lock, Deadline::never(), [&] { return finishing || !queue.empty(); });
    if (queue.empty()) break;
    const auto request = std::move(queue.front());
    queue.pop_front();
    if (closed || request->abandoned) {
      request->answer = fail(Errc::kClosed, text("process ", request->spec.name, ": the launcher was stopped"));
    } else {
      lock.unlock();
      auto spawned = detail::spawn(request->spec, request->environment);
      lock.lock();
      answer(*request, std::move(spawned));
    }
    changed.notify_all();
  }
  spawner_ended = true;
  watcher.finish();   // by this thread: one that is stuck in a start may still have a process to be watched
  changed.notify_all();
}

/// Under the mutex.
void Launcher::State::answer(Request& request, Result<Spawned> spawned) {
  if (!spawned) {
    Error error = std::move(spawned.error());
    error.message = text("process ", request.spec.name, ": ", error.message);
    request.answer = fail(std::move(error));
    return;
  }
  const auto process = std::make_shared<Process>(services, wake, request.spec.name, spawned->pid, std::move(spawned->pidfd));
  watcher.add(process, std::move(spawned->output), std::move(spawned->errors));
  std::erase_if(processes, [](const auto& p) { return p->has_ended(); });
  processes.push_back(process);
  if (request.abandoned || closed) process->kill();
  request.answer = process;
}

/// What still runs after all that can be done; each line names one.
std::vector<std::string> Launcher::State::end_processes(Deadline until) {
  std::vector<std::shared_ptr<Process>> running;
  {
    std::lock_guard lock(mutex);
    closed = true;   // what is being started now is killed by answer(), and the watcher does not end before it
    running = processes;
  }
  const Duration left = until.is_never() ? 2 * kMostGrace : until.time() - services.clock->now();
  for (const auto& process : running) {
    if (!process->has_ended()) process->terminate(std::clamp<Duration>(left / 2, Duration::zero(), kMostGrace));
  }
  const Deadline last = std::max(until, services.clock->after(kLastMoment));
  std::vector<std::string> stuck;
  for (const auto& process : running) {
    if (!process->wait(last)) stuck.push_back(text("process ", process->name(), " (pid ", process->pid(), ") does not end, not even by SIGKILL"));
  }
  return stuck;
}

/// Joins the thread, or leaves it and returns false when it has not ended in time.
bool Launcher::State::end_thread(Thread& thread, const bool& has_ended, Deadline until) {
  if (!thread.joinable()) return true;   // it could not be made
  {
    std::unique_lock lock(mutex);
    const Deadline last = std::max(until, services.clock->after(kLastMoment));
    if (!changed.wait(lock, last, [&] { return has_ended; })) {
      lock.unlock();
      thread.leave();
      return false;
    }
  }
  thread.join();
  return true;
}

void Launcher::start_threads() {
  Clock& clock = *state_->services.clock;
  state_->spawner_thread = Thread(clock, "troupe-spawn", [state = state_] { state->spawn_all(); });
  state_->watcher_thread = Thread(clock, "troupe-watch", [state = state_] {
    state->watcher.run();
    std::lock_guard lock(state->mutex);
    state->watcher_ended = true;
    state->changed.notify_all();
  });
}

Result<std::unique_ptr<Launcher>> Launcher::create(LauncherOptions options) {
  const Descriptor probe(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  if (!probe.is_open() && (errno == ENOSYS || errno == EPERM)) {
    return fail(Errc::kUnavailable, "worker processes need pidfds: Linux 5.4 or later, allowed by the container's seccomp profile");
  }
  if (!probe.is_open()) return fail(system_error(errno, "no descriptor to watch processes with"));
  auto wake = WakeEvent::create();
  if (!wake) return fail(std::move(wake.error()));
  std::unique_ptr<Launcher> launcher(new Launcher(std::make_shared<State>(std::move(options), std::move(*wake))));
  try {
    launcher->start_threads();
    return launcher;
  } catch (const std::system_error& error) {
    return fail(Errc::kResourcesBusy, text("no thread to start processes from: ", error.what()));
  }
}

Launcher::~Launcher() {
  if (auto ended = stop(state_->services.clock->after(kMostGrace)); !ended) state_->services.log->warn(ended.error().describe());
}

Result<std::shared_ptr<Process>> Launcher::start(ProcessSpec spec) {
  if (auto ok = check(spec); !ok) return fail(std::move(ok.error()));
  if (::getpid() != state_->owner) {
    return fail(Errc::kUnavailable, text("process ", spec.name, ": this process was forked from the one that has the runtime (pid ",
                                         state_->owner, "); make a runtime here"));
  }
  const auto request = std::make_shared<Request>();
  request->environment = environment_of(spec);   // in the caller's thread: nobody else may touch the host's environment
  const Duration timeout = spec.start_timeout;
  request->spec = std::move(spec);
  std::unique_lock lock(state_->mutex);
  if (state_->closed) return fail(Errc::kClosed, text("process ", request->spec.name, ": the launcher was stopped"));
  state_->queue.push_back(request);
  state_->changed.notify_all();
  if (state_->changed.wait(lock, state_->services.clock->after(timeout), [&] { return request->answer.has_value(); })) {
    return std::move(*request->answer);
  }
  request->abandoned = true;
  return fail(Errc::kTimeout, text("process ", request->spec.name, ": ", request->spec.executable, " did not start within ",
                                   std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count(), " ms; is its file system slow?"));
}

Result<void> Launcher::stop(Deadline until) {
  State& state = *state_;
  std::lock_guard only_one(state.joining);
  if (!state.spawner_thread.joinable()) return {};
  if (::getpid() != state.owner) {   // threads and children are the parent's
    state.spawner_thread.leave();
    state.watcher_thread.leave();
    return {};
  }
  auto stuck = state.end_processes(until);
  {
    std::lock_guard lock(state.mutex);
    state.finishing = true;
    state.changed.notify_all();
  }
  if (!state.end_thread(state.spawner_thread, state.spawner_ended, until)) stuck.emplace_back("the start of a program does not return");
  if (!state.end_thread(state.watcher_thread, state.watcher_ended, until)) stuck.emplace_back("the thread that watches processes does not end (a log sink that does not return, or the processes above)");
  if (stuck.empty()) return {};
  std::string all;
  for (const auto& line : stuck) all += (all.empty() ? "" : "; ") + line;
  return fail(Errc::kTimeout, text("stopping worker processes: ", all));
}

}  // namespace troupe::detail
