#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <troupe/base/text.hpp>
#include "process/launcher.hpp"

namespace troupe::detail {

using namespace std::chrono_literals;

/// Polls what no one announces (the kernel's view); false when it did not come true in time.
template <class Ready>
bool eventually(Ready ready, Duration most = 10s) {
  const auto end = std::chrono::steady_clock::now() + most;
  while (!ready()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

inline std::size_t entries(const std::string& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}
inline std::size_t open_descriptors() { return entries("/proc/self/fd"); }
inline std::size_t threads() { return entries("/proc/self/task"); }

/// The state letter of a process, 0 when there is none.
inline char state_of(pid_t pid) {
  std::ifstream stat(text("/proc/", pid, "/stat"));
  std::string all;
  std::getline(stat, all);
  const auto end = all.rfind(')');
  return end == std::string::npos ? '\0' : all[end + 2];
}

/// Of a process that is another's child: when it ends is when its new parent waits for it.
inline bool is_gone(pid_t pid) { return state_of(pid) == '\0' || state_of(pid) == 'Z'; }

/// Children of this process, zombies included.
inline std::size_t children() {
  std::size_t count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream list(task.path() / "children");
    for (pid_t pid = 0; list >> pid;) ++count;
  }
  return count;
}

class ProcessTest : public testing::Test {
 protected:
  ~ProcessTest() override {
    launcher.reset();
    executor->stop();
  }

  static ProcessSpec spec(std::vector<std::string> arguments) {
    return {.name = "vision.2", .executable = TROUPE_PROCESS_CHILD, .arguments = std::move(arguments)};
  }
  std::shared_ptr<Process> start(std::vector<std::string> arguments) { return or_throw(launcher->start(spec(std::move(arguments)))); }
  static ExitInfo end_of(const std::shared_ptr<Process>& process) { return or_throw(process->wait(soon())); }
  static Deadline soon() { return system_clock()->after(20s); }

  std::vector<std::string> lines(LogLevel level = LogLevel::kInfo) {
    std::lock_guard lock(mutex);
    return logged[level];
  }
  bool saw(const std::string& part) {
    std::lock_guard lock(mutex);
    return std::ranges::any_of(logged[LogLevel::kInfo], [&](const auto& line) { return line.find(part) != std::string::npos; });
  }
  /// The pid that ends the last line.
  pid_t last_number() {
    const std::string line = lines().back();
    return std::stoi(line.substr(line.rfind(' ') + 1));
  }
  void expect_nothing_left(std::size_t fds, std::size_t tasks) {
    EXPECT_TRUE(eventually([&] { return threads() == tasks; })) << threads() << " threads, " << tasks << " before";
    EXPECT_EQ(open_descriptors(), fds);
    EXPECT_EQ(children(), 0U);
  }

  std::mutex mutex;
  std::map<LogLevel, std::vector<std::string>> logged;
  std::shared_ptr<Executor> executor = std::make_shared<Executor>(system_clock());
  LauncherOptions options{system_clock(), executor, std::make_shared<Log>([this](LogLevel level, std::string_view line) {
                            std::lock_guard lock(mutex);
                            logged[level].emplace_back(line);
                          }, LogLevel::kDebug)};
  std::unique_ptr<Launcher> launcher = or_throw(Launcher::create(options));
};

}  // namespace troupe::detail
