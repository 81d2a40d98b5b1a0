// The code of docs/guides/explore.md, as it stands there.
#include <iostream>

#include <gtest/gtest.h>

#include <troupe/actors/runtime.hpp>
#include <troupe/explore/explore.hpp>

namespace troupe::explore::test {
namespace {

using namespace std::chrono_literals;

// [guide: actor]
/// Hands out sample numbers to whoever trains.
class Cursor {
 public:
  std::int64_t next() const { return next_; }
  void advance(std::int64_t to) { next_ = to; }
  std::int64_t take() { return next_++; }

 private:
  std::int64_t next_ = 0;
};
// [guide: end]

// [guide: scenario]
void two_trainers(Trial& trial, bool in_one_verb) {
  RuntimeOptions options;
  options.clock = trial.clock();                     // all waits, timers and threads of the runtime
  const auto runtime = or_throw(Runtime::create(std::move(options)));
  const auto cursor = or_throw(runtime.pool<Cursor>({.name = "cursor"}));
  const auto train = [&] {
    if (in_one_verb) return or_throw(cursor.one<&Cursor::take>().get(1s));
    const auto mine = or_throw(cursor.one<&Cursor::next>().get(1s));
    or_throw(cursor.one<&Cursor::advance>(mine + 1).get(1s));
    return mine;
  };
  std::int64_t theirs = -1;
  Thread other(*trial.clock(), "trainer", [&] { theirs = train(); });   // not std::thread
  const auto mine = train();
  other.join();
  trial.expect(mine != theirs, text("both trainers took sample ", mine));
}
// [guide: end]

// EXP-1: the guide's fault is found, its repair is sound
TEST(Guide, FindsTheSampleThatIsTakenTwice) {
  const auto broken = explore({.seeds = 500}, [](Trial& trial) { two_trainers(trial, false); });
  ASSERT_TRUE(broken.failure);
  EXPECT_NE(broken.failure->what.find("both trainers took sample 0"), std::string::npos);
  std::cout << broken.failure->describe();
  const auto sound = explore({.seeds = 500}, [](Trial& trial) { two_trainers(trial, true); });
  EXPECT_FALSE(sound.failure) << sound.failure->describe();
  std::cout << sound.runs << " runs, " << sound.distinct << " distinct, " << sound.steps << " steps\n";
}

}  // namespace
}  // namespace troupe::explore::test
