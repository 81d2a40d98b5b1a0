#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include <troupe/base/clock.hpp>
#include <troupe/base/result.hpp>
#include "descriptor.hpp"

namespace troupe::detail {

/// A program to start.
struct ProcessSpec {
  std::string name;                         ///< For logs and errors: "pool.rank".
  std::string executable;                   ///< A path; PATH is not searched.
  std::vector<std::string> arguments = {};  ///< Without argv[0], which is the path.
  /// On top of the host's environment as it is when start() is called; nullopt removes the variable.
  std::map<std::string, std::optional<std::string>> environment = {};
  std::vector<int> cpus = {};               ///< It may run on these only; empty: where the host may.
  std::vector<int> descriptors = {};        ///< Arrive as kFirstDescriptor, +1, ... Lent until start() returns.
  Duration start_timeout = std::chrono::seconds(30);
};

/// Where ProcessSpec::descriptors begin in the child.
inline constexpr int kFirstDescriptor = 3;

/// What a start leaves with the parent.
struct Spawned {
  pid_t pid = -1;
  Descriptor pidfd;    ///< None when the child ended and the host took its status before it could be had.
  Descriptor output;   ///< Its stdout and stderr, to be read without blocking.
  Descriptor errors;
};

/// What can be said without starting: kInvalidArgument names the field.
[[nodiscard]] Result<void> check(const ProcessSpec& spec);

/// The host's environment with the changes of `spec`, as NAME=value.
[[nodiscard]] std::vector<std::string> environment_of(const ProcessSpec& spec);

/// Starts the program and returns when it runs, or with why it does not. In the child: stdin is /dev/null,
/// stdout and stderr are pipes, `descriptors` follow, all others are closed; every signal has its default and none is
/// blocked; it leads a process group of its own, so that Ctrl-C in the host's terminal does not kill workers before
/// the host has decided what to do, and what it leaves running can be ended with it.
/// Fails with: kInvalidArgument (a CPU that may not be used, a descriptor that is not open, too long arguments),
/// kUnavailable (executable missing, or not one that this user and machine can run), kResourcesBusy (limits of
/// processes and descriptors), kOutOfMemory, kIo.
/// Thread: one that lives as long as the child, which dies with it (SUP-9, worker_process_setup).
[[nodiscard]] Result<Spawned> spawn(const ProcessSpec& spec, const std::vector<std::string>& environment);

}  // namespace troupe::detail
