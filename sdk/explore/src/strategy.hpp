#pragma once

#include <cstdint>
#include <vector>

namespace troupe::explore {

struct Runner;

/// Numbers from a seed, the same on every machine (the standard's distributions are not).
/// Source: Steele, Lea, Flood 2014, SplitMix64.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) {}
  [[nodiscard]] std::uint64_t next() noexcept;
  [[nodiscard]] std::uint64_t below(std::uint64_t limit) noexcept { return next() % limit; }
  [[nodiscard]] bool one_in(std::uint64_t n) noexcept { return below(n) == 0; }

 private:
  std::uint64_t state_;
};

/// Who goes on, drawn from a seed. Odd seeds walk at random and change the thread with one probability each;
/// even ones give each thread a priority, always run the highest, and lower the running one's at random steps.
class Strategy {
 public:
  explicit Strategy(std::uint64_t seed);
  [[nodiscard]] std::uint64_t priority();
  /// One of `runnable` (not empty), which may hold `current`.
  [[nodiscard]] Runner* pick(const std::vector<Runner*>& runnable, Runner* current);
  /// `runner` says that others should go first.
  void yield(Runner& runner);

 private:
  Draws draws_;
  bool by_priority_;
  std::uint64_t odds_;  ///< One step in this many changes something.
  std::uint64_t floor_;  ///< Below every priority so far.
};

}  // namespace troupe::explore
