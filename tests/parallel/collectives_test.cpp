// Each collective against its adjoint: <A x, y> == <x, A* y> over all members, in fp64.
#include <atomic>
#include <mutex>
#include <numeric>

#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include <troupe/parallel/attention.hpp>
#include <troupe/parallel/collectives.hpp>

#include "support/modules.hpp"
#include "support/ranks.hpp"

namespace troupe {
namespace {

/// Sums both products over the members.
class Products {
 public:
  void add(const at::Tensor& x, const at::Tensor& out, const at::Tensor& y) {
    out.backward(y);
    add_forward(out, y, 1);
    add_backward(x, 1);
  }
  void add_forward(const at::Tensor& out, const at::Tensor& y, double weight) {
    const double product = weight * out.detach().mul(y).sum().item<double>();
    std::lock_guard lock(mutex_);
    forward_ += product;
  }
  void add_backward(const at::Tensor& x, double weight) {
    const double product = weight * x.detach().mul(x.grad()).sum().item<double>();
    std::lock_guard lock(mutex_);
    backward_ += product;
  }
  void expect_equal() const { EXPECT_NEAR(forward_, backward_, 1e-10 * std::max(1.0, std::abs(forward_))); }

 private:
  std::mutex mutex_;
  double forward_ = 0;
  double backward_ = 0;
};

at::Tensor leaf(std::vector<std::int64_t> shape, int phase) { return test::scattered(std::move(shape), phase).requires_grad_(true); }

class Adjoints : public ::testing::TestWithParam<int> {};

TEST_P(Adjoints, OfTheExchangeWithUnevenHeadsAndRows) {  // EDG-2's test, for layers
  Products products;
  test::on_ranks(GetParam(), [&](transport::Group& sp, int rank) {
    ExchangeLayout layout;
    for (int member = 0; member < sp.size(); ++member) {
      layout.rows.push_back(member == 1 ? 0 : 3 + member);
      layout.heads.push_back(share_of(3, sp.size(), member));
    }
    const at::Tensor x = leaf({layout.rows[static_cast<std::size_t>(rank)], 3, 2}, rank);
    const at::Tensor out = rows_to_heads(x, layout, sp);
    products.add(x, out, test::scattered(out.sizes().vec(), 100 + rank));
    const at::Tensor back = heads_to_rows(out.detach(), layout, sp);
    EXPECT_TRUE(at::equal(back, x.detach())) << "the inverse";
  });
  products.expect_equal();
}

TEST_P(Adjoints, OfGatheringRows) {
  Products products;
  test::on_ranks(GetParam(), [&](transport::Group& group, int rank) {
    std::vector<std::int64_t> rows;
    for (int member = 0; member < group.size(); ++member) rows.push_back(member % 3);
    const at::Tensor x = leaf({rows[static_cast<std::size_t>(rank)], 4}, rank);
    const at::Tensor out = gather_rows(x, rows, group);
    products.add(x, out, test::scattered(out.sizes().vec(), 100 + rank));
  });
  products.expect_equal();
}

TEST_P(Adjoints, OfSummingAndScatteringRows) {
  Products products;
  test::on_ranks(GetParam(), [&](transport::Group& group, int rank) {
    std::vector<std::int64_t> rows;
    for (int member = 0; member < group.size(); ++member) rows.push_back((member + 1) % 3);
    const at::Tensor x = leaf({std::accumulate(rows.begin(), rows.end(), std::int64_t{0}), 4}, rank);
    const at::Tensor out = reduce_scatter_rows(x, rows, group);
    EXPECT_EQ(out.size(0), rows[static_cast<std::size_t>(rank)]);
    products.add(x, out, test::scattered(out.sizes().vec(), 100 + rank));
  });
  products.expect_equal();
}

// one side is replicated: it counts once in the product, and each is the other's inverse
TEST_P(Adjoints, OfGatheringAndSplittingADim) {
  for (const int dim : {0, 1, 2}) {
    Products gather;
    Products split;
    test::on_ranks(GetParam(), [&](transport::Group& group, int rank) {
      DimShards shards{dim, {}};
      for (int member = 0; member < group.size(); ++member) shards.sizes.push_back(member == 2 ? 0 : 1 + member);
      const double replicas = group.size();
      std::vector<std::int64_t> shape{3, 3, 3};
      shape[static_cast<std::size_t>(dim)] = shards.sizes[static_cast<std::size_t>(rank)];
      const at::Tensor part = leaf(shape, rank);
      const at::Tensor whole = gather_dim(part, shards, group);
      gather.add_forward(whole, test::scattered(whole.sizes().vec(), 7), 1 / replicas);
      whole.backward(test::scattered(whole.sizes().vec(), 7));
      gather.add_backward(part, 1);
      const at::Tensor all = leaf(whole.sizes().vec(), 9);
      const at::Tensor mine = split_dim(all, shards, group);
      split.add_forward(mine, test::scattered(mine.sizes().vec(), rank), 1);
      mine.backward(test::scattered(mine.sizes().vec(), rank));
      split.add_backward(all, 1 / replicas);
      EXPECT_TRUE(at::equal(split_dim(whole.detach(), shards, group), part.detach())) << "the inverse";
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mine.data_ptr()) % 64, 0U) << "TRN-3";
    });
    gather.expect_equal();
    split.expect_equal();
  }
}

// NUM-5: what does not divide the tensor is refused before anything is sent
TEST(Collectives, RefuseShardsThatDoNotFit) {
  const auto solo = transport::solo_group("tp");
  const at::Tensor x = at::zeros({4, 2});
  EXPECT_THROW((void)gather_rows(x, {3}, *solo), Exception);
  EXPECT_THROW((void)gather_rows(x, {2, 2}, *solo), Exception);
  EXPECT_THROW((void)split_dim(x, {2, {2}}, *solo), Exception);
  EXPECT_THROW((void)reduce_scatter_rows(x, {5}, *solo), Exception);
}

TEST_P(Adjoints, OfTheConjugatePairOfTensorParallelism) {
  // f: identity forward, sum backward; g: sum forward, identity backward
  test::on_ranks(GetParam(), [&](transport::Group& tp, int rank) {
    const at::Tensor x = leaf({5}, 0);
    copy_to_group(x, tp).backward(at::full({5}, 1.0 + rank, at::kDouble));
    EXPECT_EQ(x.grad()[0].item<double>(), tp.size() * (tp.size() + 1) / 2.0);
    const at::Tensor part = at::full({3}, 1.0 + rank, at::kDouble).requires_grad_(true);
    const at::Tensor sum = reduce_from_group(part, tp);
    EXPECT_EQ(sum[0].item<double>(), tp.size() * (tp.size() + 1) / 2.0);
    sum.backward(at::full({3}, 7.0, at::kDouble));
    EXPECT_EQ(part.grad()[0].item<double>(), 7.0);
  });
}
INSTANTIATE_TEST_SUITE_P(, Adjoints, ::testing::Values(1, 2, 3, 4));

TEST(PackedAttention, KeepsItemsApart) {
  const at::Tensor x = test::scattered({9, 2, 4});
  const std::vector<std::int64_t> lengths{2, 2, 5};
  const at::Tensor whole = packed_attention(x, x, x, lengths);
  for (const auto& [begin, rows] : {std::pair<std::int64_t, std::int64_t>{0, 2}, {2, 2}, {4, 5}}) {
    const at::Tensor item = x.narrow(0, begin, rows);
    const std::vector<std::int64_t> alone{rows};
    EXPECT_TRUE(at::allclose(whole.narrow(0, begin, rows), packed_attention(item, item, item, alone), 1e-12, 1e-14));
  }
}

TEST(UlyssesAttention, CostsFourExchangesALayer) {
  test::on_ranks(2, [&](transport::Group& sp, int rank) {
    const std::vector<Segments> shards{{{.id = 0, .rows = 3}}, {{.id = 0, .rows = 2, .first = 3}}};
    const at::Tensor x = test::scattered({rank == 0 ? 3 : 2, 2, 4});
    const auto before = sp.traffic().operations;
    (void)ulysses_attention(x, x, x, shards, sp);
    EXPECT_EQ(sp.traffic().operations - before, 4);
  });
}

// section 11 of the design: backward runs on the thread that called it, and so do its collectives
struct WhereBackwardRan {
  std::thread::id thread;
};
TEST(RankThreads, RunBackwardOnTheCallingThread) {
  test::on_ranks(2, [&](transport::Group& tp, int) {
    EXPECT_FALSE(c10::AutogradState::get_tls_state().get_multithreading_enabled());
    const auto self = std::this_thread::get_id();
    std::thread::id ran;
    at::Tensor x = at::ones({2}, at::kDouble).requires_grad_(true);
    at::Tensor y = reduce_from_group(copy_to_group(x, tp) * 2, tp);
    y.register_hook([&](const at::Tensor&) {
      ran = std::this_thread::get_id();
      EXPECT_FALSE(c10::AutogradState::get_tls_state().get_multithreading_enabled()) << "also inside backward";
    });
    y.sum().backward();
    EXPECT_EQ(ran, self);
  });
}

}  // namespace
}  // namespace troupe
