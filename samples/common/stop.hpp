#pragma once

#include <stop_token>

namespace samples {

/// Turns Ctrl-C and SIGTERM into a stop token. The signals belong to the program, not to the library: make
/// one before any thread starts, so that all of them inherit the mask.
class StopOnSignal {
 public:
  StopOnSignal();
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

  [[nodiscard]] std::stop_token token() const { return source_.get_token(); }
  [[nodiscard]] bool requested() const { return source_.stop_requested(); }

 private:
  struct Waiter;
  std::stop_source source_;
  Waiter* waiter_;
};

}  // namespace samples
