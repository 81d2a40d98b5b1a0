#include "progress.hpp"

#include <algorithm>
#include <cstdio>
#include <string>

#include <unistd.h>

namespace samples {

namespace {

/// " vision 120,118 language 96,95": of each rank.
std::string peaks_of(const troupe::StepReport& report) {
  std::string out;
  for (const auto& [stage, by_rank] : report.peak_bytes) {
    out += " " + stage;
    for (std::size_t rank = 0; rank < by_rank.size(); ++rank) out += (rank == 0 ? " " : ",") + std::to_string(by_rank[rank] >> 20);
  }
  return out;
}

}  // namespace

Progress::Progress(std::int64_t first, std::int64_t last, std::int64_t log_every)
    : first_(first), last_(last), log_every_(log_every), terminal_(isatty(STDOUT_FILENO) != 0), start_(std::chrono::steady_clock::now()) {}

void Progress::step(const troupe::StepReport& report, std::int64_t patches) {
  const double seconds = std::max(report.seconds.at("step"), 1e-9);
  // smoothed: single steps jump with what else the machine does
  const auto smooth = [&](double& value, double now) { value = value == 0 ? now : 0.9 * value + 0.1 * now; };
  smooth(patches_per_second_, static_cast<double>(patches) / seconds);
  smooth(tokens_per_second_, static_cast<double>(report.valid) / seconds);
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const double left = elapsed / static_cast<double>(report.step - first_ + 1) * static_cast<double>(last_ - report.step);
  char line[320];
  std::snprintf(line, sizeof line, "step %4ld/%ld  loss %6.3f  %6.0f patches/s  %5.0f tokens/s  peak MiB%s  %3.0f s left", static_cast<long>(report.step), static_cast<long>(last_),
                report.loss, patches_per_second_, tokens_per_second_, peaks_of(report).c_str(), left);
  if (terminal_) {
    constexpr int kWidth = 24;
    const int done = static_cast<int>(kWidth * report.step / last_);
    std::printf("\r[%.*s%*s] %s\033[K", done, "########################", kWidth - done, "", line);
  } else if (report.step % log_every_ == 0 || report.step == first_ || report.step == last_) {
    std::printf("%s\n", line);
  }
  std::fflush(stdout);
}

void Progress::finish() {
  if (terminal_) std::printf("\n");
  std::fflush(stdout);
}

}  // namespace samples
