#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <troupe/explore/explore.hpp>

namespace troupe::explore::test {

/// Under a sanitizer a run costs some times as much, and makes the same decisions.
inline int seeds_here(int seeds) {
#if defined(__SANITIZE_THREAD__)
  return seeds / 4;
#elif defined(__SANITIZE_ADDRESS__)
  return seeds / 2;
#else
  return seeds;
#endif
}

/// Explores; a failing seed fails the test and tells how to replay it. Prints what was covered.
inline void expect_sound(const ExploreOptions& wanted, const std::function<void(Trial&)>& scenario) {
  auto options = ExploreOptions::from_env(wanted);
  ASSERT_TRUE(options) << options.error().describe();
  if (options->seeds > 1) options->seeds = seeds_here(options->seeds);
  const Exploration done = explore(*options, scenario);
  EXPECT_FALSE(done.failure) << done.failure->describe();
  ::testing::Test::RecordProperty("steps", std::to_string(done.steps));
  std::cout << done.runs << " runs, " << done.distinct << " distinct, " << done.steps << " steps, " << done.switches << " switches\n";
}

/// expect() of a Result, with its error.
template <class T>
void expect_ok(Trial& trial, const Result<T>& result, const std::string& what) {
  trial.expect(result.has_value(), what + (result ? std::string{} : ": " + result.error().describe()));
}

/// How often something happened: the books of a run. Only ever touched with the baton.
class Tally {
 public:
  explicit Tally(Trial& trial) : trial_(&trial) {}
  /// Counts the start of something that must end exactly once.
  void began(const std::string& what) { ++open_[what]; }
  void ended(const std::string& what) { trial_->expect(--open_[what] >= 0, what + " ended more often than it began"); }
  void expect_balanced() {
    for (const auto& [what, count] : open_) trial_->expect(count == 0, what + ": " + std::to_string(count) + " never ended");
  }

 private:
  Trial* trial_;
  std::map<std::string, int> open_;
};

/// An argument or result that counts the copies alive: none may outlive the run's handles.
struct Token {
  std::shared_ptr<int> life;
  int value = 0;
};

}  // namespace troupe::explore::test
