// What process_test.cpp starts: process_child MODE [ARGUMENT...]
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "process/launcher.hpp"
#include "process/worker_setup.hpp"

namespace troupe::detail {
namespace {

using namespace std::chrono_literals;
using Arguments = std::vector<std::string>;

int sleep_long() {
  std::this_thread::sleep_for(60s);
  return 9;
}

int say(const std::string& what, std::ostream& out = std::cout) {
  out << what << std::flush;
  return 0;
}

int interleave(const Arguments& arguments) {
  const int lines = std::stoi(arguments.at(0));
  for (int i = 0; i < lines; ++i) {
    say("out " + std::to_string(i) + "\n");
    say("err " + std::to_string(i) + "\n", std::cerr);
  }
  return 0;
}

/// Binary, colours, UTF-8 whole and broken, a progress bar, and no end of the last line.
int garbage(const Arguments& /*arguments*/) {
  const char bytes[] = "\x00\x1b[31mred\xff\n\xe4\xb8\xad ok \xe4\xb8\n10%\r20%\r\n\nlast without end";
  std::fwrite(bytes, 1, sizeof bytes - 1, stdout);
  return 0;
}

int long_line(const Arguments& arguments) { return say(std::string(std::stoul(arguments.at(0)), 'x') + "\nafter\n"); }

int ignore_term(const Arguments& /*arguments*/) {
  std::signal(SIGTERM, SIG_IGN);
  say("ignoring\n");
  return sleep_long();
}

/// Writes for ever.
int flood(const Arguments& /*arguments*/) {
  std::string lines;
  while (lines.size() < 60000) lines += std::string(99, 'y') + "\n" + std::string(99, 'z') + "\n";
  while (::write(STDOUT_FILENO, lines.data(), lines.size()) > 0) continue;
  return 1;
}

/// Writes more than a usual pipe holds in one go, and ends at once.
int burst(const Arguments& arguments) {
  ::fcntl(STDOUT_FILENO, F_SETPIPE_SZ, 1 << 20);
  std::string lines;
  for (int i = 0; i < std::stoi(arguments.at(0)); ++i) lines += "line " + std::to_string(i) + "\n";
  return ::write(STDOUT_FILENO, lines.data(), lines.size()) == static_cast<ssize_t>(lines.size()) ? 0 : 1;
}

/// Ends, and leaves a daemon that has its output open and writes for ever.
int with_daemon(const Arguments& arguments) {
  const pid_t daemon = ::fork();
  if (daemon == 0) {
    ::setsid();
    return flood(arguments);
  }
  say("daemon " + std::to_string(daemon) + "\n", std::cerr);
  pollfd full{STDOUT_FILENO, POLLOUT, 0};
  while (::poll(&full, 1, 0) != 0) std::this_thread::yield();   // until the daemon is faster than who reads
  return 0;
}

/// A worker with a helper of its own that would stay.
int with_child(const Arguments& arguments) {
  const pid_t helper = ::fork();
  if (helper == 0) return sleep_long();
  say("helper " + std::to_string(helper) + "\n");
  return arguments.empty() ? 0 : sleep_long();
}

int environment(const Arguments& arguments) {
  for (const auto& name : arguments) {
    const char* value = std::getenv(name.c_str());
    say(name + (value != nullptr ? std::string("=") + value : " unset") + "\n");
  }
  return 0;
}

/// What it inherited: open descriptors, CPUs, signals, group.
int inherited(const Arguments& /*arguments*/) {
  std::string open;
  for (int fd = 0; fd < 256; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) open += " " + std::to_string(fd);
  }
  say("open" + open + "\n");
  cpu_set_t cpus;
  ::sched_getaffinity(0, sizeof cpus, &cpus);
  std::string allowed;
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &cpus)) allowed += " " + std::to_string(cpu);
  }
  say("cpus" + allowed + "\n");
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    constexpr std::uint64_t kLibcs = 0x180000000;   // 32 and 33 are the C library's: its posix_spawn leaves them ignored
    if (line.starts_with("SigBlk") || line.starts_with("SigIgn")) {
      say(line.substr(0, 6) + " " + std::to_string(std::stoull(line.substr(7), nullptr, 16) & ~kLibcs) + "\n");
    }
  }
  return say(::getpgrp() == ::getpid() ? "leads its group\n" : "in a group of another\n");
}

/// What stands behind its first descriptors.
int names(const Arguments& arguments) {
  for (int fd = kFirstDescriptor; fd < kFirstDescriptor + std::stoi(arguments.at(0)); ++fd) {
    say(std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd)).string() + "\n");
  }
  return 0;
}

/// Answers on an inherited socket what it reads, in capitals.
int answer(const Arguments& arguments) {
  const int fd = std::stoi(arguments.at(0));
  char buffer[64];
  const ssize_t got = ::read(fd, buffer, sizeof buffer);
  for (ssize_t i = 0; i < got; ++i) buffer[i] = static_cast<char>(std::toupper(buffer[i]));
  return ::write(fd, buffer, static_cast<std::size_t>(got)) == got ? 0 : 1;
}

int worker(const Arguments& arguments) {
  const auto ok = worker_process_setup(std::stoi(arguments.at(0)));
  if (!ok) {
    say(ok.error().describe() + "\n");
    return 5;
  }
  say("worker " + std::to_string(::getpid()) + "\n");
  return sleep_long();
}

struct Host {
  std::shared_ptr<Executor> executor = std::make_shared<Executor>(system_clock());
  std::shared_ptr<Log> log = std::make_shared<Log>([](LogLevel, std::string_view line) { say(std::string(line) + "\n"); }, LogLevel::kDebug);
  std::unique_ptr<Launcher> launcher = or_throw(Launcher::create({system_clock(), executor, log}));

  Result<std::shared_ptr<Process>> start(Arguments arguments) {
    return launcher->start({.name = "inner", .executable = "/proc/self/exe", .arguments = std::move(arguments)});
  }
};

/// A host of its own: starts a worker, says so, waits to be killed.
int host(const Arguments& /*arguments*/) {
  Host host;
  if (auto started = host.start({"worker", std::to_string(::getpid())}); !started) return say(started.error().describe() + "\n");
  return sleep_long();
}

/// No process may be started: the limit of its user is reached.
int limited(const Arguments& /*arguments*/) {
  Host host;
  const rlimit none{1, 1};
  ::setrlimit(RLIMIT_NPROC, &none);
  if (::getuid() == 0 && ::setuid(65534) != 0) return 6;   // root has no limit
  const auto started = host.start({"exit", "0"});
  return say(started ? "started\n" : started.error().describe() + "\n");
}

/// A host that has the kernel throw every status away.
int ignore_children(const Arguments& /*arguments*/) {
  std::signal(SIGCHLD, SIG_IGN);
  Host host;
  for (int i = 0; i < 20; ++i) {
    const auto process = host.start({"exit", "3"});
    if (!process) return say(process.error().describe() + "\n");
    const auto info = (*process)->wait(system_clock()->after(10s));
    say(info ? info->description + "\n" : info.error().describe() + "\n");
  }
  return 0;
}

}  // namespace
}  // namespace troupe::detail

int main(int count, char** values) {
  using namespace troupe::detail;
  if (count < 2) return 100;
  const Arguments arguments(values + 2, values + count);
  const std::map<std::string, int (*)(const Arguments&)> modes = {
      {"exit", [](const Arguments& a) { return std::stoi(a.at(0)); }},
      {"die", [](const Arguments& a) { return std::raise(std::stoi(a.at(0))); }},
      {"sleep", [](const Arguments&) { return sleep_long(); }},
      {"interleave", interleave}, {"flood", flood}, {"burst", burst}, {"with_daemon", with_daemon}, {"garbage", garbage}, {"long_line", long_line}, {"ignore_term", ignore_term}, {"with_child", with_child},
      {"environment", environment}, {"inherited", inherited}, {"names", names}, {"answer", answer}, {"worker", worker}, {"host", host}, {"limited", limited},
      {"ignore_children", ignore_children}};
  const auto mode = modes.find(values[1]);
  return mode == modes.end() ? 101 : mode->second(arguments);
}
