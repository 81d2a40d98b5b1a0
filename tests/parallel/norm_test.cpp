// case 18, NUM-3: the norm of shards is the norm of the gathered gradients; sums in buckets; AdamW's groups.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include <troupe/parallel/gradients.hpp>
#include <troupe/parallel/optimizer.hpp>

#include "support/modules.hpp"
#include "support/ranks.hpp"

namespace troupe {
namespace {

using test::scattered;

void add_parameters(ParameterStore& store) {
  (void)store.add("column", {7, 5}, Initial::constant(0), {0, "tp"});
  (void)store.add("row", {5, 6}, Initial::constant(0), {1, "tp", 2});
  (void)store.add("fused", {10, 3}, Initial::constant(0), {0, "tp", 1, {4, 4, 2}});
  (void)store.add("few", {2, 3}, Initial::constant(0), {0, "tp"});   // fewer than 4 ranks
  (void)store.add("norm", {5}, Initial::constant(1), {});
  (void)store.add("scalar", {}, Initial::constant(1), {});
}

TEST(GlobalNorm, IsTheNormOfTheGatheredGradientsInEveryLayout) {
  for (const Mesh& mesh : {Mesh{}, Mesh{{"tp", 2}}, Mesh{{"tp", 4}}, Mesh{{"dp", 3}}, Mesh{{"dp", 2}, {"tp", 2}}, Mesh{{"tp", 3}, {"sp", 2}}, Mesh{{"dp", 2}, {"sp", 2}, {"tp", 2}}}) {
    double sum = 0;
    double expected = 0;
    for (int rank = 0; rank < mesh.size(); ++rank) {
      ParameterStore store;
      store.configure({.dtype = at::kDouble, .mesh = mesh, .rank = rank});
      add_parameters(store);
      expected = 0;
      for (const auto& entry : store.entries()) {
        const at::Tensor global = scattered(entry.spec.shape, static_cast<double>(entry.spec.name.size()));
        expected += global.square().sum().item<double>();
        entry.tensor.mutable_grad() = or_throw(shard_of(entry.spec, mesh, rank, global));
      }
      sum += local_norm_square(store).item<double>();
    }
    EXPECT_NEAR(sum, expected, 1e-12 * expected) << mesh.to_string();
  }
}

// more than one bucket, one parameter larger than a bucket; every sum in its place and in memory of its own (TRN-3)
TEST(Gradients, AreSummedAcrossBuckets) {
  test::on_ranks(2, [](transport::Group& dp, int rank) {
    ParameterStore store;
    store.configure({.dtype = at::kFloat, .mesh = {{"dp", 2}}, .rank = rank});
    const std::vector<std::int64_t> sizes{3, (5 << 20) + 1, 5, 9 << 20, 7};
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      (void)store.add(std::to_string(i), {sizes[i]}, Initial::constant(0), {});
      store.entries()[i].tensor.mutable_grad() = at::full({sizes[i]}, static_cast<double>(i + 1) * (rank + 1));
    }
    const auto before = dp.traffic().operations;
    ASSERT_TRUE(sum_gradients(store, dp));
    EXPECT_EQ(dp.traffic().operations - before, 3);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const at::Tensor& gradient = store.entries()[i].tensor.grad();
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(gradient.data_ptr()) % 64, 0U);
      EXPECT_TRUE(gradient.eq(3.0 * static_cast<double>(i + 1)).all().item<bool>()) << i;
    }
  });
}

TEST(AdamW, GivesEachGroupItsRateAndDecay) {
  ParameterStore store;
  store.configure({.dtype = at::kDouble});
  for (const char* name : {"fast", "slow", "left", "still"}) (void)store.add(name, {2}, Initial::constant(1), {});
  (void)store.add("empty", {0, 3}, Initial::constant(1), {});
  AdamW adam(store, {{{0}, 0.1, 0.0}, {{1, 3, 4}, 0.01, 0.5}}, {});
  for (std::size_t i = 0; i < 3; ++i) store.entries()[i].tensor.mutable_grad() = at::full({2}, 0.3, at::kDouble);
  adam.step(1.0, at::ones({}, at::kDouble));
  const auto value = [&](std::size_t i) { return store.entries()[i].tensor[1].item<double>(); };
  const double unit = 0.3 / (0.3 + 1e-8);   // the first step is the gradient over its own size
  EXPECT_NEAR(value(0), 1 - 0.1 * unit, 1e-12);
  EXPECT_NEAR(value(1), 1 - 0.01 * 0.5 - 0.01 * unit, 1e-12);
  EXPECT_EQ(value(2), 1) << "in no group";
  EXPECT_NEAR(value(3), 1 - 0.01 * 0.5, 1e-15) << "without a gradient: decayed only";
}

// NUM-3: by bits, so that replicas with the same NaN do not hide the fault that made it, and -0 is not 0
TEST(Shards, ReplicasAreComparedByBits) {
  const ParameterSpec one{"layer.weight", {2}, {}, {}};
  const at::Tensor nan = at::full({2}, std::numeric_limits<double>::quiet_NaN(), at::kDouble);
  EXPECT_TRUE(assemble(one, {{"dp", 2}}, std::vector<at::Tensor>{nan, nan.clone()}));
  EXPECT_FALSE(assemble(one, {{"dp", 2}}, std::vector<at::Tensor>{at::zeros({2}, at::kDouble), at::full({2}, -0.0, at::kDouble)}));
  EXPECT_EQ(assemble(one, {{"dp", 2}}, std::vector<at::Tensor>{nan}).error().code, Errc::kMismatch);
}

}  // namespace
}  // namespace troupe
