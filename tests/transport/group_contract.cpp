// Collectives against their serial meaning, bit for bit, and the bytes they move against formulas.
#include "group_contract.hpp"

#include <numeric>
#include <utility>

namespace troupe::transport::test {
namespace {

/// Numbers whose sum depends on its order.
template <class T>
std::vector<T> numbers(int rank, std::int64_t count) {
  std::vector<T> out(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<T>((static_cast<double>((i * 7 + static_cast<std::size_t>(rank) * 13) % 101) - 50.0) * (rank % 2 == 0 ? 1e6 : 1e-3) / 3.0);
  return out;
}

template <class T>
std::vector<T> summed_in_rank_order(int size, std::int64_t count) {
  auto sum = numbers<T>(0, count);
  for (int rank = 1; rank < size; ++rank) {
    const auto more = numbers<T>(rank, count);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
  }
  return sum;
}

template <class T>
void check_all_reduce(GroupContract&, const std::function<void(const std::function<void(Group&, int)>&)>& run, int size, DType dtype) {
  for (const std::int64_t count : {0, 1, 3, 64, 1001, 40000}) {
    const auto expected = summed_in_rank_order<T>(size, count);
    run([&](Group& group, int rank) {
      auto values = numbers<T>(rank, count);
      const auto reduced = group.all_reduce(tensor_of(values, dtype));
      ASSERT_TRUE(reduced) << reduced.error().describe();
      EXPECT_TRUE(count == 0 || std::memcmp(values.data(), expected.data(), values.size() * sizeof(T)) == 0) << "rank " << rank << ", " << count;  // NUM-1
    });
  }
}

TEST_P(GroupContract, AllReduceSumsInRankOrderBitForBit) {  // NUM-1
  const auto on_all = [this](const std::function<void(Group&, int)>& fn) { run(fn); };
  check_all_reduce<double>(*this, on_all, size(), DType::kF64);
  check_all_reduce<float>(*this, on_all, size(), DType::kF32);
  check_all_reduce<std::int64_t>(*this, on_all, size(), DType::kI64);
  check_all_reduce<std::int32_t>(*this, on_all, size(), DType::kI32);
}

TEST_P(GroupContract, AllReduceTakesTheLargest) {
  run([&](Group& group, int rank) {
    std::vector<float> values{static_cast<float>(rank), -static_cast<float>(rank), 5};
    ASSERT_TRUE(group.all_reduce(tensor_of(values, DType::kF32), Reduce::kMax));
    EXPECT_EQ(values, (std::vector<float>{static_cast<float>(size() - 1), 0, 5}));
  });
}

TEST_P(GroupContract, HalfPrecisionIsSummedInSingle) {  // bf16: 1, then what single keeps and bf16 would not
  run([&](Group& group, int) {
    std::vector<std::uint16_t> values(5, 0x3f80);  // 1.0
    ASSERT_TRUE(group.all_reduce(tensor_of(values, DType::kBf16)));
    const std::uint16_t expected[] = {0, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0};
    EXPECT_EQ(values[0], expected[size()]);
  });
}

TEST_P(GroupContract, AllGatherTakesRaggedPartsZeroIncluded) {  // TRN-3, Z1
  run([&](Group& group, int rank) {
    const auto rows = [](int of) { return of % 3 == 1 ? 0 : of + 2; };
    Tensor in = make_pattern(DType::kBool, {rows(rank), 3}, rank);
    std::vector<Tensor> out;
    for (int of = 0; of < size(); ++of) out.push_back(make_tensor(DType::kBool, {rows(of), 3}));
    ASSERT_TRUE(group.all_gather(in, out));
    for (int of = 0; of < size(); ++of) EXPECT_EQ(packed(out[static_cast<std::size_t>(of)]), packed(make_pattern(DType::kBool, {rows(of), 3}, of))) << of;
  });
}

TEST_P(GroupContract, AllToAllExchangesEveryDType) {  // T3: moved by bytes
  for (const DType dtype : kAllDTypes) {
    run([&](Group& group, int rank) {
      const auto count = [](int from, int to) { return (from * 5 + to * 3) % 7; };
      std::vector<Tensor> in, out;
      for (int to = 0; to < size(); ++to) in.push_back(make_pattern(dtype, {count(rank, to)}, rank * 10 + to));
      for (int from = 0; from < size(); ++from) out.push_back(make_tensor(dtype, {count(from, rank)}));
      ASSERT_TRUE(group.all_to_all(in, out));
      for (int from = 0; from < size(); ++from) EXPECT_EQ(packed(out[static_cast<std::size_t>(from)]), packed(make_pattern(dtype, {count(from, rank)}, from * 10 + rank)));
    });
  }
}

TEST_P(GroupContract, ReduceScatterGivesEachItsSum) {
  run([&](Group& group, int rank) {
    std::vector<std::vector<double>> parts;
    std::vector<Tensor> in;
    for (int to = 0; to < size(); ++to) parts.push_back(numbers<double>(rank, 10 + to));
    for (auto& part : parts) in.push_back(tensor_of(part, DType::kF64));
    std::vector<double> out(static_cast<std::size_t>(10 + rank));
    ASSERT_TRUE(group.reduce_scatter(in, tensor_of(out, DType::kF64)));
    EXPECT_EQ(out, summed_in_rank_order<double>(size(), 10 + rank));
  });
}

TEST_P(GroupContract, BroadcastAndBarrier) {
  for (int root = 0; root < size(); ++root) {
    run([&](Group& group, int rank) {
      std::vector<int> values{rank == root ? 42 : 0, rank};
      ASSERT_TRUE(group.broadcast(tensor_of(values, DType::kI32), root));
      EXPECT_EQ(values, (std::vector<int>{42, root}));
      ASSERT_TRUE(group.barrier());
    });
  }
}

TEST_P(GroupContract, BytesAreThoseOfTheAlgorithm) {
  if (size() == 1) GTEST_SKIP() << "one member moves nothing";
  std::vector<std::int64_t> sent(static_cast<std::size_t>(size())), gathered(sent.size());
  constexpr std::int64_t kCount = 10007;
  run([&](Group& group, int rank) {
    auto values = numbers<float>(rank, kCount);
    ASSERT_TRUE(group.all_reduce(tensor_of(values, DType::kF32)));
    sent[static_cast<std::size_t>(rank)] = group.traffic().sent_bytes;
    Tensor in = make_pattern(DType::kU8, {100 + rank});
    std::vector<Tensor> out;
    for (int of = 0; of < size(); ++of) out.push_back(make_tensor(DType::kU8, {100 + of}));
    ASSERT_TRUE(group.all_gather(in, out));
    gathered[static_cast<std::size_t>(rank)] = group.traffic().sent_bytes - sent[static_cast<std::size_t>(rank)];
  });
  const auto chunks = chunk_elements(kCount, DType::kF32, size());
  EXPECT_EQ(std::accumulate(chunks.begin(), chunks.end(), std::int64_t{0}), kCount);
  for (int rank = 0; rank < size(); ++rank) {
    const std::int64_t own = chunks[static_cast<std::size_t>(rank)];
    EXPECT_EQ(sent[static_cast<std::size_t>(rank)], 4 * ((kCount - own) + (size() - 1) * own)) << rank;
    EXPECT_EQ(gathered[static_cast<std::size_t>(rank)], (size() - 1) * (100 + rank)) << rank;
  }
}

TEST_P(GroupContract, BytesOfTheOtherOperationsAreTheirFormulas) {
  if (size() == 1) GTEST_SKIP() << "one member moves nothing";
  run([&](Group& group, int rank) {
    std::int64_t before = 0;
    const auto moved = [&] { return group.traffic().sent_bytes - std::exchange(before, group.traffic().sent_bytes); };
    std::vector<Tensor> in, out;
    for (int to = 0; to < size(); ++to) in.push_back(make_pattern(DType::kF64, {10 + to}));
    std::int64_t others = 0;
    for (int to = 0; to < size(); ++to) others += to == rank ? 0 : 8 * (10 + to);
    Tensor sum = make_tensor(DType::kF64, {10 + rank});
    ASSERT_TRUE(group.reduce_scatter(in, sum));
    EXPECT_EQ(moved(), others) << "reduce-scatter: what is meant for the others, once";
    for (int from = 0; from < size(); ++from) out.push_back(make_tensor(DType::kF64, {10 + rank}));
    ASSERT_TRUE(group.all_to_all(in, out));
    EXPECT_EQ(moved(), others) << "all-to-all: the same";
    Tensor value = make_pattern(DType::kU8, {1000});
    ASSERT_TRUE(group.broadcast(value, 0));
    EXPECT_EQ(moved(), rank == 0 ? (size() - 1) * 1000 : 0) << "broadcast: the root to each";
    ASSERT_TRUE(group.barrier());
    EXPECT_EQ(moved(), 0) << "a barrier carries no bytes";
  });
}

TEST_P(GroupContract, ReductionsOfTypesThatDoNotAddAreRefusedOnAll) {  // T3
  run([&](Group& group, int) {
    Tensor flags = make_pattern(DType::kBool, {5});
    const auto refused = group.all_reduce(flags);
    if (size() > 1 || !refused) {
      ASSERT_FALSE(refused);
    }
  });
}

}  // namespace
}  // namespace troupe::transport::test
