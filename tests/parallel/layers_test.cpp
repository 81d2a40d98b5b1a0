// NUM-1, NUM-3, NUM-8: every tensor-parallel layer against its serial twin in fp64; replicas and runs bit for bit.
#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include <troupe/parallel/attention.hpp>
#include <troupe/parallel/collectives.hpp>
#include <troupe/parallel/linear.hpp>
#include <troupe/parallel/vocab.hpp>

#include "twins.hpp"

namespace troupe {
namespace {

using test::expect_twin;
using test::scattered;
using transport::Group;

DimShards shards_of(int dim, std::int64_t total, const Group& group, std::int64_t unit = 1) {
  DimShards out{dim, {}};
  for (int member = 0; member < group.size(); ++member) out.sizes.push_back(share_of(total / unit, group.size(), member).size * unit);
  return out;
}

class TensorParallel : public ::testing::TestWithParam<int> {
 protected:
  [[nodiscard]] test::TwinLayout tp() const { return {{"tp", GetParam()}, {}}; }
};
INSTANTIATE_TEST_SUITE_P(, TensorParallel, ::testing::Values(1, 2, 3, 4));

TEST_P(TensorParallel, ReplicatedLayersEqualTheirTwins) {
  expect_twin(
      [](const Parameters& parameters, Group&, const at::Tensor& x) {
        const Linear linear(parameters.scope("linear"), 6, 5, {.deviation = 0.5});
        const LayerNorm layer_norm(parameters.scope("layer_norm"), 5);
        const RmsNorm rms_norm(parameters.scope("rms_norm"), 5);
        return rms_norm.forward(layer_norm.forward(linear.forward(x)));
      },
      scattered({3, 2, 6}), tp());
}

TEST_P(TensorParallel, ColumnParallelLinearEqualsItsTwin) {
  expect_twin(  // 7 columns over 1..4 members
      [](const Parameters& parameters, Group& tp, const at::Tensor& x) {
        const ColumnParallelLinear column(parameters, 6, 7, tp, {.deviation = 0.5});
        return gather_dim(column.forward(x), shards_of(2, 7, tp), tp);
      },
      scattered({3, 2, 6}), tp());
}

TEST_P(TensorParallel, RowParallelLinearAddsItsBiasOnce) {
  const test::Computation compute = [](const Parameters& parameters, Group& tp, const at::Tensor& x) {
    const RowParallelLinear row(parameters, 7, 5, tp, {.deviation = 0.5});
    if (x.numel() == 0) return x;
    return row.forward(split_dim(x, shards_of(1, 7, tp), tp));
  };
  expect_twin(compute, scattered({4, 7}), tp());
  test::on_ranks(GetParam(), [&](Group& tp, int rank) {
    ParameterStore store;
    store.configure({.dtype = at::kDouble, .mesh = {{"tp", tp.size()}}, .rank = rank});
    const RowParallelLinear row(Parameters(store, "row"), 7, 5, tp);
    const c10::NoGradGuard no_grad;
    store.entries()[1].tensor.fill_(1.5);   // the initial bias is 0, which hides how often it is added
    EXPECT_TRUE(at::equal(row.forward(at::zeros({2, shards_of(1, 7, tp).sizes[static_cast<std::size_t>(rank)]}, at::kDouble)), at::full({2, 5}, 1.5, at::kDouble)));
  });
}

// a gated block as models have it: gate and up fused, each divided by itself, 5 columns each, so that one of 4 ranks has the fewest
TEST_P(TensorParallel, FusedPartsAreDividedEach) {
  expect_twin(
      [](const Parameters& parameters, Group& tp, const at::Tensor& x) {
        const ColumnParallelLinear gate_up(parameters.scope("gate_up"), 6, 10, tp, {.parts = {5, 5}, .deviation = 0.5});
        const RowParallelLinear down(parameters.scope("down"), 5, 6, tp, {.deviation = 0.5});
        const auto halves = gate_up.forward(x).chunk(2, -1);
        return x + down.forward(at::silu(halves[0]) * halves[1]);
      },
      scattered({4, 6}), tp());
}

// case 8: 7 heads over 4 members, 3 over 4 (one without any), 20 over 3
class HeadsOverMembers : public ::testing::TestWithParam<std::tuple<int, std::int64_t>> {};
INSTANTIATE_TEST_SUITE_P(, HeadsOverMembers, ::testing::Combine(::testing::Values(1, 2, 3, 4), ::testing::Values<std::int64_t>(1, 3, 7, 20)));

TEST_P(HeadsOverMembers, AttentionEqualsItsTwin) {
  const auto [size, heads] = GetParam();
  constexpr std::int64_t kDim = 3;
  const std::int64_t width = heads * kDim;
  expect_twin(
      [heads = heads, width](const Parameters& parameters, Group& tp, const at::Tensor& x) {
        const ColumnParallelLinear qkv(parameters.scope("qkv"), 5, 3 * width, tp, {.unit = kDim, .parts = {width, width, width}, .deviation = 0.5});
        const RowParallelLinear out(parameters.scope("out"), width, 5, tp, {.unit = kDim, .deviation = 0.5});
        const std::int64_t mine = share_of(heads, tp.size(), tp.rank()).size;
        const auto parts = qkv.forward(x).view({x.size(0), 3, mine, kDim}).unbind(1);
        const std::vector<std::int64_t> lengths{4, 1, 1, 5};
        return out.forward(packed_attention(parts[0], parts[1], parts[2], lengths, Mask::kCausal).reshape({x.size(0), mine * kDim}));
      },
      scattered({11, 5}), {{"tp", size}, {}});
}

// vocabularies that do not divide, one smaller than the group; ids on every share's ends
class Vocabularies : public ::testing::TestWithParam<std::tuple<int, std::int64_t>> {};
INSTANTIATE_TEST_SUITE_P(, Vocabularies, ::testing::Combine(::testing::Values(1, 2, 3, 4), ::testing::Values<std::int64_t>(3, 8, 13)));

TEST_P(Vocabularies, TiedEmbeddingAndLossEqualTheirTwin) {
  const auto [size, vocabulary] = GetParam();
  const at::Tensor ids = at::arange(2 * vocabulary, at::kLong).remainder(vocabulary).reshape({2, vocabulary});
  const at::Tensor targets = ids.add(1).remainder(vocabulary).reshape({2 * vocabulary});
  targets[1] = -100;
  expect_twin(
      [vocabulary = vocabulary, &targets](const Parameters& parameters, Group& tp, const at::Tensor& tokens) {
        const VocabParallelEmbedding embedding(parameters, vocabulary, 4, tp, "tp", 0.7);
        const at::Tensor logits = embedding.logits(embedding.forward(tokens).tanh()).reshape({2 * vocabulary, embedding.share().size});
        return vocab_parallel_cross_entropy(logits, targets, embedding.share(), tp);
      },
      ids, {{"tp", size}, {}});
}

// case 12's kernel: a sample whose labels are all ignored adds exactly nothing
TEST(VocabParallelLoss, OfIgnoredTargetsIsExactlyZero) {
  test::on_ranks(2, [](Group& tp, int rank) {
    const at::Tensor logits = scattered({3, 4}, rank).requires_grad_(true);
    const at::Tensor losses = vocab_parallel_cross_entropy(logits, at::full({3}, -100, at::kLong), share_of(8, 2, rank), tp);
    losses.sum().backward();
    EXPECT_EQ(losses.abs().sum().item<double>(), 0);
    EXPECT_EQ(logits.grad().abs().sum().item<double>(), 0);
  });
}

// EDG-3: no rows at all take the same path, gradients exactly zero
TEST_P(TensorParallel, NoRowsTakeTheSamePath) {
  test::on_ranks(GetParam(), [](Group& tp, int rank) {
    ParameterStore store;
    store.configure({.dtype = at::kDouble, .mesh = {{"tp", tp.size()}}, .rank = rank});
    const Parameters parameters(store, "mlp");
    const ColumnParallelLinear up(parameters.scope("up"), 6, 7, tp);
    const RowParallelLinear down(parameters.scope("down"), 7, 6, tp);
    const at::Tensor x = at::zeros({0, 6}, at::kDouble).requires_grad_(true);
    down.forward(at::gelu(up.forward(x))).sum().backward();
    EXPECT_EQ(x.grad().sizes(), x.sizes());
    for (const auto& entry : store.entries()) EXPECT_EQ(entry.tensor.grad().abs().sum().item<double>(), 0) << entry.spec.name;
  });
}

}  // namespace
}  // namespace troupe
