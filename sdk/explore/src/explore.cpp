#include <troupe/explore/explore.hpp>

#include <charconv>
#include <cstdlib>
#include <set>
#include <string_view>

#include <troupe/base/text.hpp>

#include "scheduler.hpp"

namespace troupe::explore {
namespace {

std::shared_ptr<Scheduler> run_once(std::uint64_t seed, const ExploreOptions& options, const std::function<void(Trial&)>& scenario) {
  auto scheduler = std::make_shared<Scheduler>(seed, options);
  // the scheduler outlives the body, which runs on a thread that shares it
  scheduler->run([scenario, at = scheduler.get()] {
    Trial trial(*at);
    try {
      scenario(trial);
    } catch (...) {
      trial.expect(false, "the scenario threw: " + error_from_current_exception().describe());
    }
  });
  return scheduler;
}

template <class Number>
Result<void> read(const char* name, Number& out) {
  const char* const value = std::getenv(name);
  if (value == nullptr) return {};
  const std::string_view digits(value);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
  if (error == std::errc{} && end == digits.data() + digits.size() && out > 0) return {};
  return fail(Errc::kInvalidArgument, text(name, " is '", digits, "'; accepted: a whole number from 1"));
}

}  // namespace

Result<ExploreOptions> ExploreOptions::from_env(ExploreOptions defaults) {
  std::uint64_t seed = 0;
  if (auto ok = read("TROUPE_SEEDS", defaults.seeds); !ok) return fail(std::move(ok.error()));
  if (auto ok = read("TROUPE_SEED", seed); !ok) return fail(std::move(ok.error()));
  if (seed != 0) {
    defaults.first_seed = seed;
    defaults.seeds = 1;
    defaults.full_trace = true;
  }
  return defaults;
}

Exploration explore(const ExploreOptions& options, const std::function<void(Trial&)>& scenario) {
  Exploration out;
  std::set<std::uint64_t> hashes;
  for (int i = 0; i < options.seeds && !out.failure; ++i) {
    const std::uint64_t seed = options.first_seed + static_cast<std::uint64_t>(i);
    const auto run = run_once(seed, options, scenario);
    ++out.runs;
    out.steps += run->steps();
    out.switches += run->switches();
    out.hash = out.hash * 0x100000001b3U ^ run->hash();
    hashes.insert(run->hash());
    out.failure = run->take_failure();
    if (out.failure) out.failure->replays = run_once(seed, options, scenario)->hash() == run->hash();
  }
  out.distinct = static_cast<int>(hashes.size());
  return out;
}

}  // namespace troupe::explore
