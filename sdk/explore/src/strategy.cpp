#include "strategy.hpp"

#include <algorithm>

#include "scheduler.hpp"

namespace troupe::explore {
namespace {

constexpr std::uint64_t kMiddle = std::uint64_t{1} << 32;  // priorities are drawn above, lowered ones lie below

}  // namespace

std::uint64_t Draws::next() noexcept {
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

Strategy::Strategy(std::uint64_t seed) : draws_(seed), by_priority_(seed % 2 == 0), odds_(0), floor_(kMiddle) {
  // few changes find bugs of few steps that must come in order, many those of threads that interleave closely
  constexpr std::uint64_t kWalk[] = {2, 4, 12, 40}, kPriority[] = {5, 20, 80, 300};
  odds_ = by_priority_ ? kPriority[draws_.below(4)] : kWalk[draws_.below(4)];
}

std::uint64_t Strategy::priority() { return kMiddle + draws_.below(kMiddle); }

void Strategy::yield(Runner& runner) { runner.priority = --floor_; }

Runner* Strategy::pick(const std::vector<Runner*>& runnable, Runner* current) {
  const bool change = draws_.one_in(odds_);
  if (by_priority_) {
    if (change && current != nullptr) yield(*current);
    return *std::ranges::max_element(runnable, {}, [](const Runner* runner) { return runner->priority; });
  }
  if (!change && std::ranges::find(runnable, current) != runnable.end()) return current;
  return runnable[draws_.below(runnable.size())];
}

}  // namespace troupe::explore
