#include "rank_host.hpp"

#include <utility>

#include "groups.hpp"

namespace troupe::detail {
namespace {

class LocalHost final : public RankHost {
 public:
  explicit LocalHost(const Factory& factory) : factory_(factory) {}
  void construct(Rank& rank) override { object_ = factory_(rank); }
  void run(CallBase& call, Rank& rank) override { call.run(object_.get(), rank, call.width == 1 ? 0 : rank.index()); }
  void destroy() noexcept override { object_ = nullptr; }

 private:
  const Factory& factory_;
  std::shared_ptr<void> object_;
};

class LocalHosts final : public RankHosts {
 public:
  explicit LocalHosts(Factory factory) : factory_(std::move(factory)) {}
  std::unique_ptr<RankHost> host(int /*rank*/) override { return std::make_unique<LocalHost>(factory_); }
  void end_generation(GroupTable& groups, std::uint64_t generation, const Error& why) override { groups.abort(generation, why); }

 private:
  const Factory factory_;
};

}  // namespace

std::shared_ptr<RankHosts> local_hosts(Factory factory) { return std::make_shared<LocalHosts>(std::move(factory)); }

}  // namespace troupe::detail
