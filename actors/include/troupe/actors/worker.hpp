#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <troupe/actors/rank.hpp>
#include <troupe/base/clock.hpp>
#include <troupe/base/log.hpp>

namespace troupe {

/// Ranks in processes of their own on this host: RuntimeOptions::workers. Rank r of n lives in worker
/// floor(r * count / n); pools share the workers, as rank threads.
struct WorkerOptions {
  int count = 0;                              ///< Processes; 0: rank threads in this process.
  /// The program to start: it must call worker_main() and hold the same classes. "": this program.
  std::string executable = {};
  std::vector<std::string> arguments = {};    ///< Before the one that Troupe adds.
  std::map<std::string, std::optional<std::string>> environment = {};   ///< Set, or removed, on top of this process's.
  Duration start_timeout = std::chrono::seconds(60);
  Duration heartbeat = std::chrono::seconds(1);           ///< Each worker is asked this often (SUP-10).
  Duration heartbeat_timeout = std::chrono::seconds(5);   ///< One that has not answered for so long is ended.
};

/// What a worker process is given by its program.
struct WorkerMain {
  std::shared_ptr<RankEnvironment> environment = {};   ///< Around every rank, as RuntimeOptions::environment is in the host.
  LogSink log = {};                                    ///< Null: warnings and errors to stderr, which the host shows.
};

/// First in the main of a program whose ranks may live in processes:
///
///     if (const auto code = troupe::worker_main(argc, argv)) return *code;
///
/// In a process that a Runtime started as its worker it does that work and returns the exit code when the host is
/// done with it, or gone (SUP-9); elsewhere it returns nothing at once. Ranks that are still in user code 2 s after
/// the host's end are left: the process ends under them.
/// Thread: the main one, before others are started.
[[nodiscard]] std::optional<int> worker_main(int argc, char** argv, const WorkerMain& options = {});

}  // namespace troupe
