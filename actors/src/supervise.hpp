#pragma once

#include <cstdint>
#include <string_view>

#include <troupe/base/result.hpp>

namespace troupe::detail {

/// What failed, as far as the decision depends on it.
struct FailureFacts {
  bool all_ranks = false;      ///< An all-rank call of a pool with more than one rank.
  bool began = false;          ///< On some rank: user code may have run.
  bool is_pure = false;        ///< Declared to change nothing.
};

/// What the pool does about it (POOL-7).
struct FailureDecision {
  bool end_generation = false;      ///< Groups end: peers in a collective return at once.
  bool make_inconsistent = false;   ///< Until reset(): some ranks may have changed state, others not.
  bool maybe_executed = false;      ///< Of the error (SUP-1).
  friend bool operator==(const FailureDecision&, const FailureDecision&) = default;
};

/// Pure: a table in the tests says all of it.
[[nodiscard]] constexpr FailureDecision decide(const FailureFacts& facts) {
  return {.end_generation = facts.all_ranks && facts.began,
          .make_inconsistent = facts.all_ranks && facts.began && !facts.is_pure,
          .maybe_executed = facts.began};
}

}  // namespace troupe::detail
