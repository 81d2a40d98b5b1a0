// The backends under the contracts: a new one adds a line here and no test.
#include <troupe/transport/backend.hpp>

#include "channel_contract.hpp"
#include "group_contract.hpp"

namespace troupe::transport::test {

INSTANTIATE_TEST_SUITE_P(Inproc, ChannelContract, testing::Values(ChannelBackend{"inproc", &open_inproc, true, "inproc"}), backend_name);
INSTANTIATE_TEST_SUITE_P(Inproc, ChannelFailure, testing::Values(ChannelBackend{"inproc", &open_inproc, true, "inproc"}), backend_name);
INSTANTIATE_TEST_SUITE_P(Inproc, GroupContract, testing::Combine(testing::Values(GroupBackend{"inproc", &open_inproc_group}), testing::Range(1, 6)), group_name);
INSTANTIATE_TEST_SUITE_P(Inproc, GroupFailure, testing::Combine(testing::Values(GroupBackend{"inproc", &open_inproc_group}), testing::Range(2, 5)), group_name);

// TRN-7: a backend that is not there says so
TEST(Backends, ThatAreMissingSaySo) {
  const Context context = make_context();
  EXPECT_TRUE(open_channel(Backend::kInproc, context));
  for (const Backend backend : {Backend::kUcx, Backend::kNccl}) {
    const auto missing = open_channel(backend, context);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, Errc::kUnavailable);
    EXPECT_NE(missing.error().message.find(backend == Backend::kUcx ? "UCX" : "NCCL"), std::string::npos);
  }
}

}  // namespace troupe::transport::test
