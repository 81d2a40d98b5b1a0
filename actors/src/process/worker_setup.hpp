#pragma once

#include <sys/types.h>

#include <troupe/base/result.hpp>

namespace troupe::detail {

/// First in a worker's main: from now on the kernel kills this process when its host dies, however it dies (SUP-9).
/// `expected_parent` is the host's pid, told by the host: one that died before this call left no signal to ask for,
/// but another parent. Lost again when the process changes its user, or executes a set-user-id program; not
/// inherited by its own children.
/// Fails with: kPeerLost when the parent is another process (the host died, or a wrapper forked); kIo.
/// The worker must then return from main at once.
[[nodiscard]] Result<void> worker_process_setup(pid_t expected_parent);

}  // namespace troupe::detail
