// Where the gradient of an edge is read from: the other half of EDG-1.
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include <troupe/stage/edge.hpp>

#include "support/modules.hpp"

namespace troupe {
namespace {

constexpr std::int64_t kRows = 48;
constexpr std::int64_t kWidth = 8;  // a row is 64 bytes: every row may be taken by reference

/// The gradient of 48 rows that each of `replicas` consumer ranks holds, each in memory of its own.
detail::EdgeGradient replicated(int replicas) {
  auto edge = std::make_shared<detail::Edge<Packed>>();
  edge->layout = replicate(Grad::kReplicated);
  edge->mesh = Mesh{{"tp", replicas}};
  edge->check_replicas = true;
  detail::EdgeGradient out;
  out.edge = std::move(edge);
  for (int rank = 0; rank < replicas; ++rank) out.by_rank.push_back({test::scattered({kRows, kWidth}), {{.id = 7, .rows = kRows}}});
  return out;
}

bool lies_in(const at::Tensor& part, const at::Tensor& whole) {
  const auto* begin = static_cast<const char*>(whole.const_data_ptr());
  const auto* at = static_cast<const char*>(part.const_data_ptr());
  return begin <= at && at < begin + whole.nbytes();
}

class Readers : public ::testing::TestWithParam<std::tuple<int, int>> {};
INSTANTIATE_TEST_SUITE_P(, Readers, ::testing::Combine(::testing::Values(1, 2, 3, 4), ::testing::Values(1, 2, 3, 4)));

// EDG-1: producer rank d reads replica d modulo their number, each byte once, none copied
TEST_P(Readers, SpreadOverTheReplicasOfAGradient) {
  const auto [producers, replicas] = GetParam();
  const auto gradient = replicated(replicas);
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(replicas));
  std::vector<std::int64_t> expected(static_cast<std::size_t>(replicas));
  for (int rank = 0; rank < producers; ++rank) {
    const Share mine = share_of(kRows, producers, rank);
    detail::EdgeTraffic traffic;
    const at::Tensor rows = detail::adjoint_rows({{.id = 7, .rows = mine.size, .first = mine.begin}}, rank, gradient, traffic);
    EXPECT_TRUE(at::equal(rows, gradient.by_rank.front().rows.narrow(0, mine.begin, mine.size)));
    EXPECT_EQ(traffic.copied, 0);
    EXPECT_EQ(traffic.referenced, static_cast<std::int64_t>(rows.nbytes()));
    for (std::size_t replica = 0; replica < bytes.size(); ++replica) {
      if (lies_in(rows, gradient.by_rank[replica].rows)) bytes[replica] += static_cast<std::int64_t>(rows.nbytes());
    }
    expected[static_cast<std::size_t>(rank % replicas)] += mine.size * kWidth * 8;
  }
  EXPECT_EQ(bytes, expected);
}

}  // namespace
}  // namespace troupe
