// A member that differs, is missing, or fails: an error on every rank within the deadline, never a hang.
#include "group_contract.hpp"

#include <atomic>

namespace troupe::transport::test {
namespace {

using namespace std::chrono_literals;

TEST_P(GroupFailure, ADifferentOperationIsAMismatchOnAll) {  // TRN-8
  run([&](Group& group, int rank) {
    std::vector<float> values(10);
    const auto outcome = rank == 0 ? group.barrier() : group.all_reduce(tensor_of(values, DType::kF32));
    ASSERT_FALSE(outcome) << rank;
    EXPECT_NE(outcome.error().code, Errc::kTimeout) << outcome.error().describe();
  });
}

TEST_P(GroupFailure, ADifferentDTypeOrCountIsAMismatchOnAll) {  // TRN-8
  for (const bool by_count : {false, true}) {
    run([&](Group& group, int rank) {
      const bool odd = rank == size() - 1;
      std::vector<float> values(by_count && odd ? 11 : 10);
      const auto outcome = group.all_reduce(tensor_of(values, !by_count && odd ? DType::kI32 : DType::kF32));
      ASSERT_FALSE(outcome) << rank;
      EXPECT_NE(outcome.error().code, Errc::kTimeout) << outcome.error().describe();
    });
    reopen();
  }
}

TEST_P(GroupFailure, ADifferentPositionIsAMismatchOnAll) {  // TRN-8: (ticket, index)
  members_[0]->begin(99, soon(context_));
  run([&](Group& group, int rank) {
    const auto outcome = group.barrier();
    ASSERT_FALSE(outcome) << rank;
    EXPECT_NE(outcome.error().code, Errc::kTimeout) << outcome.error().describe();
  });
}

TEST_P(GroupFailure, AMissingMemberIsATimeoutForTheOthers) {
  for (auto& member : members_) member->begin(3, in_ms(context_, 100));
  run([&](Group& group, int rank) {
    if (rank == 0) return;
    std::vector<float> values(10);
    EXPECT_FALSE(group.all_reduce(tensor_of(values, DType::kF32)));
  });
  EXPECT_FALSE(members_[0]->barrier()) << "the generation has ended for the late one, too";
}

TEST_P(GroupFailure, AbortReleasesThoseThatWaitWithTheCause) {  // POOL-7, SUP-3
  const TimePoint start = context_.clock->now();
  run([&](Group& group, int rank) {
    if (rank == 0) return group.abort(Error{.code = Errc::kUserException, .message = "rank 0 is unwell"});
    std::vector<float> values(1000);
    const auto outcome = group.all_reduce(tensor_of(values, DType::kF32));
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, Errc::kPeerLost);
    EXPECT_NE(outcome.error().describe().find("rank 0 is unwell"), std::string::npos) << outcome.error().describe();
  });
  EXPECT_LT(context_.clock->now() - start, 10s);
  run([&](Group& group, int) { EXPECT_FALSE(group.barrier()) << "every later call fails at once"; });
}

TEST_P(GroupFailure, NoMemberLeavesWhileAnotherReadsItsMemory) {  // POOL-7, TRN-2
  for (int round = 0; round < 5; ++round) {
    run([&](Group& group, int rank) {
      auto values = std::make_unique<std::vector<double>>(200'000, 1.0 + rank);
      if (rank == 0) group.abort(Error{.code = Errc::kUserException, .message = "stop"});
      (void)group.all_reduce(tensor_of(*values, DType::kF64));
      values->assign(values->size(), -1);  // a reader still at it is a race that the sanitizers see
      values.reset();
    });
    reopen();
  }
}

}  // namespace
}  // namespace troupe::transport::test
