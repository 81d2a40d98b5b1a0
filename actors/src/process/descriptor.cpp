#include "descriptor.hpp"

#include <cerrno>
#include <cstdint>
#include <system_error>

#include <sys/eventfd.h>

#include <troupe/base/text.hpp>

namespace troupe::detail {

Result<std::shared_ptr<WakeEvent>> WakeEvent::create() {
  Descriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event.is_open()) return fail(system_error(errno, "no eventfd to watch processes with"));
  return std::make_shared<WakeEvent>(std::move(event));
}

void WakeEvent::wake() noexcept {
  const std::uint64_t one = 1;
  (void)!::write(event_.get(), &one, sizeof one);  // a full counter wakes as well
}

void WakeEvent::clear() noexcept {
  std::uint64_t count = 0;
  (void)!::read(event_.get(), &count, sizeof count);
}

Error system_error(int number, const std::string& what) {
  const std::string reason = std::generic_category().message(number);
  switch (number) {
    case EMFILE:
    case ENFILE:
      return {Errc::kResourcesBusy, text(what, ": ", reason, "; raise the limit (ulimit -n) or close descriptors")};
    case EAGAIN:
      return {Errc::kResourcesBusy, text(what, ": ", reason, "; the limit of processes is reached (ulimit -u, pids.max of the cgroup)")};
    case ENOMEM:
      return {Errc::kOutOfMemory, text(what, ": ", reason)};
    default:
      return {Errc::kIo, text(what, ": ", reason)};
  }
}

}  // namespace troupe::detail
