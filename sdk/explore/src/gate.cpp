#include "gate.hpp"

#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace troupe::explore {
namespace {

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* timeout) {
  static_assert(sizeof(word) == sizeof(std::uint32_t));
  return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation | FUTEX_PRIVATE_FLAG, value, timeout, nullptr, 0);
}

}  // namespace

void Gate::open() {
  open_.store(1, std::memory_order_release);
  futex(open_, FUTEX_WAKE, 1, nullptr);
}

void Gate::wait() {
  while (open_.exchange(0, std::memory_order_acquire) == 0) futex(open_, FUTEX_WAIT, 0, nullptr);
}

bool Gate::wait_for(Duration real) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(real);
  const timespec timeout{static_cast<time_t>(seconds.count()), static_cast<long>((real - seconds).count())};
  if (open_.exchange(0, std::memory_order_acquire) != 0) return true;
  futex(open_, FUTEX_WAIT, 0, &timeout);
  return open_.exchange(0, std::memory_order_acquire) != 0;
}

}  // namespace troupe::explore
