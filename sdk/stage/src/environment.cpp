#include <troupe/stage/environment.hpp>

#include <string>

#include <troupe/base/text.hpp>
#include <troupe/torch/budget.hpp>
#include <troupe/torch/rank_scope.hpp>

namespace troupe {
namespace {

class TorchScope final : public RankEnvironment::Scope {
 public:
  TorchScope(const Rank& rank, const TorchOptions& options, DeviceBudgets* budgets) : threads_(options.threads_per_rank) {
    if (budgets == nullptr) return;
    account_ = budgets->account(text(rank.pool(), " rank ", rank.index()), rank.placement().resources.gpu_memory_bytes);
    bound_ = std::make_unique<BudgetScope>(account_);
  }
  [[nodiscard]] std::int64_t peak_bytes() const override { return account_ ? account_->peak() : 0; }
  [[nodiscard]] std::int64_t live_bytes() const override { return account_ ? account_->live() : 0; }

 private:
  RankThreadScope threads_;
  std::shared_ptr<BudgetAccount> account_;
  std::unique_ptr<BudgetScope> bound_;
};

class TorchEnvironment final : public RankEnvironment {
 public:
  explicit TorchEnvironment(TorchOptions options)
      : options_(options), budgets_(options.track_memory ? std::make_unique<DeviceBudgets>() : nullptr) {}
  [[nodiscard]] std::unique_ptr<Scope> enter(const Rank& rank) override {
    return std::make_unique<TorchScope>(rank, options_, budgets_.get());
  }

 private:
  TorchOptions options_;
  std::unique_ptr<DeviceBudgets> budgets_;
};

}  // namespace

std::shared_ptr<RankEnvironment> torch_environment(TorchOptions options) { return std::make_shared<TorchEnvironment>(options); }

}  // namespace troupe
