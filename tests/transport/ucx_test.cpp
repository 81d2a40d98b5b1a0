// The UCX backend under the contracts: two nodes, or one a member, in this process; the bytes go the way that is named.
#include <map>
#include <mutex>

#include <troupe/transport/ucx.hpp>

#include "channel_contract.hpp"
#include "group_contract.hpp"

namespace troupe::transport::test {
namespace {

/// The nodes of a context, shared by all that is open at the time: UCX contexts are not for a thousand channels.
std::shared_ptr<UcxNode> node_of(const Context& context, UcxPath path, int index) {
  static std::mutex mutex;
  static std::map<std::tuple<Executor*, UcxPath, int>, std::weak_ptr<UcxNode>> open;
  const std::lock_guard lock(mutex);
  auto& known = open[{context.executor.get(), path, index}];
  auto node = known.lock();
  if (!node) known = node = or_throw(UcxNode::create(context, {.path = path}));
  return node;
}

std::uint64_t fresh_number() {
  static std::atomic<std::uint64_t> next{1};
  return next++;
}

template <UcxPath kPath>
Result<ChannelPair> open_ucx(const Context& context, const ChannelOptions& options) {
  const auto from = node_of(context, kPath, 0), to = node_of(context, kPath, 1);
  const auto number = fresh_number();
  auto sender = from->open_sender(to->address(), number, options);
  if (!sender) return fail(sender.error());
  auto receiver = to->open_receiver(from->address(), number, options);
  if (!receiver) return fail(receiver.error());
  return ChannelPair{std::move(*sender), std::move(*receiver)};
}

template <UcxPath kPath>
Result<std::vector<std::unique_ptr<Group>>> open_ucx_group(const Context& context, const std::string& name, int size) {
  std::vector<std::shared_ptr<UcxNode>> nodes;
  std::vector<std::vector<std::byte>> addresses;
  for (int rank = 0; rank < size; ++rank) {
    nodes.push_back(node_of(context, kPath, rank));
    addresses.push_back(nodes.back()->address());
  }
  const auto number = fresh_number();
  std::vector<std::unique_ptr<Group>> members;
  for (int rank = 0; rank < size; ++rank) members.push_back(or_throw(nodes[static_cast<std::size_t>(rank)]->open_group(name, number, rank, addresses)));
  return members;
}

std::vector<ChannelBackend> channels() {
  std::vector<ChannelBackend> out{{"shm", &open_ucx<UcxPath::kShm>, false, "shm"}, {"tcp", &open_ucx<UcxPath::kTcp>, false, "tcp"}};
#if !defined(__SANITIZE_ADDRESS__)
  out.push_back({"cma", &open_ucx<UcxPath::kCma>, false, "cma"});
#endif
  return out;
}

std::vector<GroupBackend> groups() { return {{"shm", &open_ucx_group<UcxPath::kShm>}, {"tcp", &open_ucx_group<UcxPath::kTcp>}}; }

}  // namespace

INSTANTIATE_TEST_SUITE_P(Ucx, ChannelContract, testing::ValuesIn(channels()), backend_name);
INSTANTIATE_TEST_SUITE_P(Ucx, ChannelFailure, testing::ValuesIn(channels()), backend_name);
INSTANTIATE_TEST_SUITE_P(Ucx, GroupContract, testing::Combine(testing::ValuesIn(groups()), testing::Values(2, 3)), group_name);
INSTANTIATE_TEST_SUITE_P(Ucx, GroupFailure, testing::Combine(testing::ValuesIn(groups()), testing::Values(2, 3)), group_name);

}  // namespace troupe::transport::test
