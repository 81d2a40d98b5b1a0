#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include <troupe/parallel/vocab.hpp>

#include "support/modules.hpp"
#include "support/ranks.hpp"

namespace troupe {
namespace {

// notes/numbers.md 4.1(a): per-rank logits 0..7 on 4 ranks, targets 0, 2, 4, ...: logsumexp - target in closed form
TEST(VocabParallel, CrossEntropyHasItsClosedForm) {
  const double log_sum = std::log(4.0 * (std::exp(8.0) - 1) / (std::exp(1.0) - 1));
  test::on_ranks(4, [&](transport::Group& tp, int rank) {
    const Share share = share_of(32, 4, rank);
    const at::Tensor logits = at::arange(8, at::kDouble).repeat({16, 1});
    const at::Tensor targets = at::arange(0, 32, 2, at::kLong);
    const at::Tensor losses = vocab_parallel_cross_entropy(logits, targets, share, tp);
    for (std::int64_t i = 0; i < 16; ++i) EXPECT_NEAR(losses[i].item<double>(), log_sum - static_cast<double>(2 * i % 8), 1e-12) << i;
  });
}

// every share of the vocabulary, one without any rows, against LibTorch's own on one rank
class VocabSizes : public ::testing::TestWithParam<std::tuple<int, std::int64_t>> {};
TEST_P(VocabSizes, LossAndGradientEqualTheSerialTwin) {
  const auto [size, vocabulary] = GetParam();
  const at::Tensor whole = test::scattered({6, vocabulary}).mul(5);
  const at::Tensor targets = at::tensor(std::vector<std::int64_t>{0, vocabulary - 1, -100, vocabulary / 2, 0, -100}, at::kLong);
  const at::Tensor serial = whole.clone().requires_grad_(true);
  const at::Tensor expected = at::cross_entropy_loss(serial, targets, {}, at::Reduction::Sum);
  expected.backward();
  test::on_ranks(size, [&](transport::Group& tp, int rank) {
    const Share share = share_of(vocabulary, tp.size(), rank);
    const at::Tensor local = whole.narrow(1, share.begin, share.size).clone().requires_grad_(true);
    const at::Tensor loss = vocab_parallel_cross_entropy(local, targets, share, tp).sum();
    EXPECT_NEAR(loss.item<double>(), expected.item<double>(), 1e-10);
    loss.backward();
    EXPECT_TRUE(at::allclose(local.grad(), serial.grad().narrow(1, share.begin, share.size), 1e-10, 1e-12));
  });
}
INSTANTIATE_TEST_SUITE_P(, VocabSizes, ::testing::Combine(::testing::Values(1, 2, 3, 4), ::testing::Values<std::int64_t>(3, 8, 13)));

TEST(VocabParallel, LowerPrecisionIsComputedInSingle) {
  test::on_ranks(2, [&](transport::Group& tp, int rank) {
    const at::Tensor logits = at::full({2, 4}, 3.0, at::kBFloat16).requires_grad_(true);
    const at::Tensor losses = vocab_parallel_cross_entropy(logits, at::tensor(std::vector<std::int64_t>{1, 6}, at::kLong), share_of(8, 2, rank), tp);
    EXPECT_EQ(losses.scalar_type(), at::kFloat);
    EXPECT_NEAR(losses[0].item<double>(), std::log(8.0), 1e-6);
    losses.sum().backward();
    EXPECT_EQ(logits.grad().scalar_type(), at::kBFloat16);
  });
}

}  // namespace
}  // namespace troupe
