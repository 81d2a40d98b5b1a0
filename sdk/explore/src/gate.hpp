#pragma once

#include <atomic>
#include <cstdint>

#include <troupe/base/clock.hpp>

namespace troupe::explore {

/// Where one real thread waits until it is let on: a futex, since mutexes and conditions are what is
/// scheduled here. Thread: one waits, any opens.
class Gate {
 public:
  void open();
  void wait();
  /// False when `real` time passed first.
  [[nodiscard]] bool wait_for(Duration real);

 private:
  std::atomic<std::uint32_t> open_{0};
};

}  // namespace troupe::explore
