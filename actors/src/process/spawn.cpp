#include "spawn.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <troupe/base/text.hpp>

namespace troupe::detail {
namespace {

struct Pipe {
  Descriptor read, write;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail(system_error(errno, "no pipe for the output"));
  Pipe pipe{Descriptor(ends[0]), Descriptor(ends[1])};
  // our end only: a program may not expect its own stdout to refuse
  if (::fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) return fail(system_error(errno, "the pipe for the output"));
  return pipe;
}

/// The file actions of one start. Sources are first duplicated above every target, so that no
/// dup2 in the child overwrites a source that a later one needs.
class Actions {
 public:
  explicit Actions(int targets) : targets_(targets) { ::posix_spawn_file_actions_init(&actions_); }
  ~Actions() { ::posix_spawn_file_actions_destroy(&actions_); }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;

  Result<void> give(int source, int target) {
    Descriptor lifted(::fcntl(source, F_DUPFD_CLOEXEC, targets_));
    if (!lifted.is_open()) {
      if (errno == EBADF) return fail(Errc::kInvalidArgument, text("descriptor ", source, " to be inherited is not open"));
      return fail(system_error(errno, "no descriptor for the child"));
    }
    if (const int error = ::posix_spawn_file_actions_adddup2(&actions_, lifted.get(), target); error != 0) {
      return fail(system_error(error, "file actions"));
    }
    lifted_.push_back(std::move(lifted));
    return {};
  }

  /// Closes the rest in the child. Where the C library lacks the action, what the host opened without
  /// O_CLOEXEC stays open; everything of ours has it.
  Result<void> close_others() {
#if defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 34)
    if (const int error = ::posix_spawn_file_actions_addclosefrom_np(&actions_, targets_); error != 0) {
      return fail(system_error(error, "file actions"));
    }
#endif
#endif
    return {};
  }

  [[nodiscard]] const posix_spawn_file_actions_t* native() const noexcept { return &actions_; }

 private:
  int targets_;
  posix_spawn_file_actions_t actions_{};
  std::vector<Descriptor> lifted_;
};

class Attributes {
 public:
  Attributes() {
    ::posix_spawnattr_init(&attributes_);
    sigset_t signals;
    ::sigfillset(&signals);
    ::posix_spawnattr_setsigdefault(&attributes_, &signals);
    ::sigemptyset(&signals);
    ::posix_spawnattr_setsigmask(&attributes_, &signals);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  }
  ~Attributes() { ::posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  [[nodiscard]] const posix_spawnattr_t* native() const noexcept { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

/// The CPUs of the calling thread, for as long as this lives: posix_spawn has no attribute for them, but the child
/// inherits its thread's, so the program never runs elsewhere.
class Affinity {
 public:
  Affinity() = default;
  ~Affinity() {
    if (changed_) ::sched_setaffinity(0, sizeof before_, &before_);
  }
  Affinity(const Affinity&) = delete;
  Affinity& operator=(const Affinity&) = delete;

  Result<void> set(const std::vector<int>& cpus) {
    if (cpus.empty()) return {};
    cpu_set_t wanted;
    CPU_ZERO(&wanted);
    for (const int cpu : cpus) CPU_SET(static_cast<std::size_t>(cpu), &wanted);
    if (::sched_getaffinity(0, sizeof before_, &before_) != 0) return fail(system_error(errno, "reading the CPUs of the launcher"));
    changed_ = ::sched_setaffinity(0, sizeof wanted, &wanted) == 0;
    cpu_set_t got;
    CPU_ZERO(&got);
    if (changed_) ::sched_getaffinity(0, sizeof got, &got);
    if (changed_ && CPU_EQUAL(&wanted, &got)) return {};   // the kernel takes away in silence what a cpuset forbids
    std::string refused;
    for (const int cpu : cpus) {
      if (!CPU_ISSET(static_cast<std::size_t>(cpu), &got)) refused += text(refused.empty() ? "" : ", ", cpu);
    }
    return fail(Errc::kInvalidArgument, text("CPUs ", refused, " do not exist or may not be used by this process (cpuset, taskset)"));
  }

 private:
  cpu_set_t before_{};
  bool changed_ = false;
};

Error exec_error(int number, const ProcessSpec& spec) {
  struct stat found {};
  const bool exists = ::stat(spec.executable.c_str(), &found) == 0;
  const std::string reason = std::generic_category().message(number);
  switch (number) {
    case ENOENT:
      if (exists) return {Errc::kUnavailable, text(spec.executable, " names an interpreter or loader that does not exist here")};
      return {Errc::kUnavailable, text("no executable ", spec.executable, "; give the full path of a program that exists on this host")};
    case EACCES:
    case EPERM:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
      return {Errc::kUnavailable, text(spec.executable, " cannot be executed: ", reason,
                                       exists && S_ISDIR(found.st_mode) ? " (it is a folder)" : "; check its mode (chmod +x), its folders and the mount (noexec)")};
    case ENOEXEC:
    case ELIBBAD:
      return {Errc::kUnavailable, text(spec.executable, " is no program for this machine: ", reason, "; a script needs its #! line")};
    case ETXTBSY:
      return {Errc::kUnavailable, text(spec.executable, " is open for writing: ", reason, "; start it when it has been written")};
    case E2BIG:
    case ENAMETOOLONG:
      return {Errc::kInvalidArgument, text("arguments and environment of ", spec.executable, " are too long: ", reason, "; pass large values in a file")};
    default:
      return system_error(number, text("starting ", spec.executable));
  }
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (const auto& s : strings) out.push_back(const_cast<char*>(s.c_str()));  // exec's type predates const; it writes nothing
  out.push_back(nullptr);
  return out;
}

Result<void> wire(Actions& actions, const ProcessSpec& spec, int output, int errors) {
  Descriptor nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!nothing.is_open()) return fail(system_error(errno, "/dev/null"));
  std::vector<int> sources{nothing.get(), output, errors};
  sources.insert(sources.end(), spec.descriptors.begin(), spec.descriptors.end());
  for (std::size_t target = 0; target < sources.size(); ++target) {
    if (auto ok = actions.give(sources[target], static_cast<int>(target)); !ok) return ok;
  }
  return actions.close_others();
}

bool is_free_of_nul(const std::string& s) { return s.find('\0') == std::string::npos; }

}  // namespace

Result<void> check(const ProcessSpec& spec) {
  const auto refuse = [&](const std::string& why) { return fail(Errc::kInvalidArgument, text("process ", spec.name, ": ", why)); };
  if (spec.executable.empty() || !is_free_of_nul(spec.executable)) return refuse("executable must be a path");
  for (const auto& argument : spec.arguments) {
    if (!is_free_of_nul(argument)) return refuse(text("argument '", argument.c_str(), "...' holds a zero byte"));
  }
  for (const auto& [name, value] : spec.environment) {
    if (name.empty() || name.find('=') != std::string::npos || !is_free_of_nul(name)) return refuse(text("'", name, "' is no name of a variable"));
    if (value && !is_free_of_nul(*value)) return refuse(text("the value of ", name, " holds a zero byte"));
  }
  for (const int cpu : spec.cpus) {
    if (cpu < 0 || cpu >= CPU_SETSIZE) return refuse(text("cpu ", cpu, " is not in 0..", CPU_SETSIZE - 1));
  }
  if (spec.start_timeout <= Duration::zero()) return refuse("start_timeout must be > 0");
  return {};
}

std::vector<std::string> environment_of(const ProcessSpec& spec) {
  std::vector<std::string> out;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view variable(*entry);
    if (!spec.environment.contains(std::string(variable.substr(0, variable.find('='))))) out.emplace_back(variable);
  }
  for (const auto& [name, value] : spec.environment) {
    if (value) out.push_back(name + "=" + *value);
  }
  return out;
}

Result<Spawned> spawn(const ProcessSpec& spec, const std::vector<std::string>& environment) {
  auto output = make_pipe();
  auto errors = make_pipe();
  if (!output || !errors) return fail(std::move(output ? errors.error() : output.error()));
  Actions actions(kFirstDescriptor + static_cast<int>(spec.descriptors.size()));
  if (auto ok = wire(actions, spec, output->write.get(), errors->write.get()); !ok) return fail(std::move(ok.error()));
  const Attributes attributes;
  Affinity affinity;
  if (auto ok = affinity.set(spec.cpus); !ok) return fail(std::move(ok.error()));
  std::vector<std::string> arguments{spec.executable};
  arguments.insert(arguments.end(), spec.arguments.begin(), spec.arguments.end());
  Spawned out;
  const int error = ::posix_spawn(&out.pid, spec.executable.c_str(), actions.native(), attributes.native(), pointers(arguments).data(),
                                  pointers(environment).data());
  if (error != 0) return fail(exec_error(error, spec));
  out.pidfd = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, out.pid, 0)));  // close-on-exec by itself
  if (!out.pidfd.is_open() && errno != ESRCH) {
    const int reason = errno;
    ::kill(out.pid, SIGKILL);
    ::waitpid(out.pid, nullptr, 0);
    return fail(system_error(reason, "no descriptor to watch the process with"));
  }
  out.output = std::move(output->read);
  out.errors = std::move(errors->read);
  return out;
}

}  // namespace troupe::detail
