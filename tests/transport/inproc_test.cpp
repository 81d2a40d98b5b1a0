// The backends under the contracts: a new one adds a line here and no test.
#include "channel_contract.hpp"
#include "group_contract.hpp"

namespace troupe::transport::test {

INSTANTIATE_TEST_SUITE_P(Inproc, ChannelContract, testing::Values(ChannelBackend{"inproc", &open_inproc, true, "inproc"}), backend_name);
INSTANTIATE_TEST_SUITE_P(Inproc, ChannelFailure, testing::Values(ChannelBackend{"inproc", &open_inproc, true, "inproc"}), backend_name);
INSTANTIATE_TEST_SUITE_P(Inproc, GroupContract, testing::Combine(testing::Values(GroupBackend{"inproc", &open_inproc_group}), testing::Range(1, 6)), group_name);
INSTANTIATE_TEST_SUITE_P(Inproc, GroupFailure, testing::Combine(testing::Values(GroupBackend{"inproc", &open_inproc_group}), testing::Range(2, 5)), group_name);

}  // namespace troupe::transport::test
