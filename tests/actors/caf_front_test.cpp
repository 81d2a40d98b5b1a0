// CAF actors call pools through one typed front each; no CAF type is public.
#include <gtest/gtest.h>

#include <troupe/actors/runtime.hpp>

#include "caf_actors.hpp"

namespace troupe::detail {
namespace {

using namespace std::chrono_literals;

class Adder {
 public:
  int add(int a, int b) {
    if (a < 0) throw std::invalid_argument("negative");
    return a + b;
  }
};

class CafFront : public ::testing::Test {
 protected:
  Runtime runtime = or_throw(Runtime::create());
  Pool<Adder> pool = or_throw(runtime.pool<Adder>({.name = "adders", .mesh = {{"dp", 2}}}));
  std::shared_ptr<CafWorld> world = or_throw(caf_world(runtime.core()));

  std::shared_ptr<TypedCall<int>> make(int a, int b, std::size_t width) {
    auto call = make_call<Adder, &Adder::add>(runtime.clock(), false, static_cast<verb_parameters<&Adder::add>*>(nullptr), a, b);
    call->values.resize(width);
    return call;
  }
  std::string ask(const std::shared_ptr<TypedCall<int>>& call, int only_rank) {
    std::string failed;
    caf::scoped_actor self{system_of(*world)};
    self->request(front_of(*world, pool.core()), caf::duration{5s}, SubmitAtom::value, CafCall{call, only_rank})
        .receive([&](CafCall& answered) { failed = answered.call->error() ? answered.call->error()->describe() : ""; },
                 [&](caf::error& error) { failed = "caf: " + system_of(*world).render(error); });
    return failed;
  }
};

TEST_F(CafFront, CarriesACallAndItsValue) {
  const auto call = make(1, 2, 1);
  EXPECT_EQ(ask(call, 1), "");
  EXPECT_EQ(*call->values[0], 3);
  const auto all = make(2, 3, 2);
  EXPECT_EQ(ask(all, -1), "");
  EXPECT_EQ(*all->values[1], 5);
}

TEST_F(CafFront, CarriesTheErrorOfAVerb) {
  EXPECT_NE(ask(make(-1, 2, 1), 0).find("negative"), std::string::npos);
  EXPECT_EQ(ask(make(1, 2, 1), 0), "") << "and the front lives on";
}

TEST_F(CafFront, AnswersARefusedCall) {
  pool.close();
  EXPECT_NE(ask(make(1, 2, 1), 0).find("Closed"), std::string::npos);
}

TEST_F(CafFront, EndsWithTheRuntime) {
  EXPECT_EQ(ask(make(1, 2, 1), 0), "");
  world.reset();
  EXPECT_TRUE(runtime.shutdown(5s));
  EXPECT_EQ(caf_world(runtime.core()).error().code, Errc::kClosed);
}

}  // namespace
}  // namespace troupe::detail
