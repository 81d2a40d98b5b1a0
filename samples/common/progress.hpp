#pragma once

#include <chrono>
#include <cstdint>

#include <troupe/stage/report.hpp>

namespace samples {

/// A bar on a terminal, a line every n steps otherwise: loss, rates, memory, what is left.
class Progress {
 public:
  /// Steps `first` (from 1) to `last`.
  Progress(std::int64_t first, std::int64_t last, std::int64_t log_every);
  void step(const troupe::StepReport& report, std::int64_t patches);
  void finish();

 private:
  std::int64_t first_, last_;
  std::int64_t log_every_;
  bool terminal_;
  std::chrono::steady_clock::time_point start_;
  double patches_per_second_ = 0;
  double tokens_per_second_ = 0;
};

}  // namespace samples
