#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include <troupe/parallel/gradients.hpp>
#include <troupe/parallel/optimizer.hpp>
#include <troupe/parallel/schedule.hpp>

#include "support/ranks.hpp"

namespace troupe {
namespace {

ParameterStore& filled(ParameterStore& store, double value) {
  store.configure({.dtype = at::kDouble});
  (void)store.add("a", {3}, Initial::constant(value), {});
  return store;
}

// AdamW written out in doubles: decoupled decay, bias correction
TEST(AdamW, FollowsItsClosedForm) {
  ParameterStore store;
  filled(store, 2.0);
  AdamW adam(store, {{{0}, 0.1, 0.01}}, {0.9, 0.999, 1e-8});
  double parameter = 2, m = 0, v = 0;
  for (int step = 1; step <= 5; ++step) {
    const double gradient = 0.3 * step;
    store.entries()[0].tensor.mutable_grad() = at::full({3}, 2 * gradient, at::kDouble);
    adam.step(0.5, at::full({}, 0.5, at::kDouble));
    parameter -= 0.05 * 0.01 * parameter;
    m = 0.9 * m + 0.1 * gradient;
    v = 0.999 * v + 0.001 * gradient * gradient;
    parameter -= 0.05 * (m / (1 - std::pow(0.9, step))) / (std::sqrt(v / (1 - std::pow(0.999, step))) + 1e-8);
    EXPECT_NEAR(store.entries()[0].tensor[0].item<double>(), parameter, 1e-13) << step;
  }
}

TEST(Schedules, WarmUpThenCosine) {
  const WarmupCosine schedule{.warmup_steps = 10, .total_steps = 110, .final_ratio = 0.1};
  EXPECT_DOUBLE_EQ(warmup_cosine(schedule, 1), 0.1);
  EXPECT_DOUBLE_EQ(warmup_cosine(schedule, 10), 1.0);
  EXPECT_NEAR(warmup_cosine(schedule, 60), 0.55, 1e-12);
  EXPECT_NEAR(warmup_cosine(schedule, 110), 0.1, 1e-12);
  EXPECT_NEAR(warmup_cosine(schedule, 500), 0.1, 1e-12);
  EXPECT_DOUBLE_EQ(warmup_cosine({}, 7), 1.0);
}

TEST(Patterns, MatchRunsOfCharacters) {
  EXPECT_TRUE(matches_pattern("*", ""));
  EXPECT_TRUE(matches_pattern("vision.*", "vision.blocks.0.weight"));
  EXPECT_TRUE(matches_pattern("*.bias", "a.b.bias"));
  EXPECT_TRUE(matches_pattern("a*b*c", "aXbYbZc"));
  EXPECT_FALSE(matches_pattern("vision.*", "language.weight"));
  EXPECT_FALSE(matches_pattern("a*b", "abc"));
}

// EDG-3: a gradient that does not exist takes the same path as zeros
TEST(Gradients, AreSummedAlsoWhereSomeDoNotExist) {
  test::on_ranks(3, [](transport::Group& dp, int rank) {
    ParameterStore store;
    store.configure({.dtype = at::kDouble, .mesh = {{"dp", 3}}, .rank = rank});
    (void)store.add("a", {2}, Initial::constant(0), {});
    (void)store.add("b", {3}, Initial::constant(0), {});
    if (rank != 1) store.entries()[0].tensor.mutable_grad() = at::full({2}, 1.0 + rank, at::kDouble);
    ASSERT_TRUE(sum_gradients(store, dp));
    EXPECT_EQ(store.entries()[0].tensor.grad()[0].item<double>(), 4.0);
    EXPECT_EQ(store.entries()[1].tensor.grad().abs().sum().item<double>(), 0.0);
    // case 18, NUM-3: only the first replica counts it
    EXPECT_NEAR(local_norm_square(store).item<double>(), rank == 0 ? 32.0 : 0.0, 1e-12);
  });
}

}  // namespace
}  // namespace troupe
