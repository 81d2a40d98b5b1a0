#include "worker_setup.hpp"

#include <cerrno>
#include <csignal>

#include <sys/prctl.h>
#include <unistd.h>

#include <troupe/base/text.hpp>
#include "descriptor.hpp"

namespace troupe::detail {

Result<void> worker_process_setup(pid_t expected_parent) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return fail(system_error(errno, "asking to die with the host process"));
  // only now: a host that dies after this line sends the signal, one that died before it shows here
  if (const pid_t parent = ::getppid(); parent != expected_parent) {
    return fail(Errc::kPeerLost, text("the host process ", expected_parent, " is not the parent of this worker, ", parent,
                                      " is: the host died, or the worker runs in a wrapper that forks (let it exec)"));
  }
  return {};
}

}  // namespace troupe::detail
