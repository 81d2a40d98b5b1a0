// Tensors without data (kMeta): members agree as always, and no byte moves (NUM-6: a step can be run on shapes alone).
#include "group_contract.hpp"

namespace troupe::transport::test {
namespace {

Tensor shape_of(std::int64_t elements, DType dtype = DType::kF32) { return {nullptr, {dtype, {elements}, {}, {MemoryKind::kMeta, 0}}, nullptr, nullptr}; }

TEST_P(GroupContract, ShapesOnlyEveryCollectiveMeetsAndMovesNothing) {
  run([&](Group& group, int rank) {
    std::vector<Tensor> each, mine;
    for (int peer = 0; peer < size(); ++peer) {
      each.push_back(shape_of(1000 + peer));
      mine.push_back(shape_of(1000 + rank));
    }
    EXPECT_TRUE(group.all_reduce(shape_of(1'000'000'000'000)));
    EXPECT_TRUE(group.all_gather(shape_of(1000 + rank), each));
    EXPECT_TRUE(group.reduce_scatter(each, shape_of(1000 + rank)));
    EXPECT_TRUE(group.all_to_all(each, mine));
    EXPECT_TRUE(group.broadcast(shape_of(5), size() - 1));
    EXPECT_EQ(group.traffic().sent_bytes + group.traffic().received_bytes, 0);
    std::vector<float> values(3, 1);
    ASSERT_TRUE(group.all_reduce(tensor_of(values, DType::kF32))) << "and then with data";
    EXPECT_EQ(values[0], static_cast<float>(size()));
  });
}

// TRN-8
TEST_P(GroupContract, ShapesOnlyCountsThatDifferAreAMismatchOnAll) {
  if (size() == 1) GTEST_SKIP() << "one member agrees with itself";
  run([&](Group& group, int rank) {
    const auto outcome = group.all_reduce(shape_of(rank == 1 ? 7 : 8));
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, Errc::kMismatch) << outcome.error().describe();
  });
}

// TRN-8
TEST_P(GroupContract, ShapesOnlyDataOnSomeMembersOnlyIsAMismatchOnAll) {
  if (size() == 1) GTEST_SKIP() << "one member agrees with itself";
  run([&](Group& group, int rank) {
    std::vector<float> values(8);
    const auto outcome = group.all_reduce(rank == 1 ? shape_of(8) : tensor_of(values, DType::kF32));
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, Errc::kMismatch) << outcome.error().describe();
    EXPECT_NE(outcome.error().describe().find("without data"), std::string::npos) << outcome.error().describe();
  });
}

TEST_P(GroupContract, ShapesOnlyDataInSomeTensorsOnlyIsRefused) {
  run([&](Group& group, int) {
    std::vector<float> values(4);
    std::vector<Tensor> out(static_cast<std::size_t>(size()), tensor_of(values, DType::kF32));
    EXPECT_FALSE(group.all_gather(shape_of(4), out));
  });
}

}  // namespace
}  // namespace troupe::transport::test
