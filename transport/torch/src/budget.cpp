#include <troupe/torch/budget.hpp>

#include <mutex>
#include <utility>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <troupe/base/result.hpp>
#include <troupe/base/text.hpp>
#include <troupe/base/units.hpp>

namespace troupe {
namespace {

thread_local std::shared_ptr<BudgetAccount> current_account;

/// What a booked block remembers: who took it, and the block of the allocator below.
struct Block {
  c10::DataPtr below;
  std::shared_ptr<BudgetAccount> account;
  std::int64_t bytes = 0;
};

void free_block(void* context) {
  auto* block = static_cast<Block*>(context);
  block->account->give_back(block->bytes);
  delete block;
}

class CountingAllocator final : public c10::Allocator {
 public:
  explicit CountingAllocator(c10::Allocator* below) : below_(below) {}

  c10::DataPtr allocate(std::size_t bytes) override {
    if (!current_account || bytes == 0) return below_->allocate(bytes);
    const auto wanted = static_cast<std::int64_t>(bytes);
    current_account->take(wanted);
    auto block = std::make_unique<Block>();
    block->account = current_account;
    block->bytes = wanted;
    try {
      block->below = below_->allocate(bytes);
    } catch (...) {
      current_account->give_back(wanted);
      throw;
    }
    void* const data = block->below.get();
    const c10::Device device = block->below.device();
    return {data, block.release(), &free_block, device};
  }
  void copy_data(void* target, const void* source, std::size_t bytes) const override { below_->copy_data(target, source, bytes); }
  [[nodiscard]] c10::Allocator* below() const { return below_; }

 private:
  c10::Allocator* below_;
};

/// LibTorch's registry of allocators is process-wide, so is the count of who asked for ours. The allocator is
/// never destroyed: blocks may outlive whoever installed it.
std::mutex install_mutex;
int installed = 0;
CountingAllocator* counting = nullptr;

}  // namespace

void BudgetAccount::take(std::int64_t bytes) {
  const std::int64_t now = live_.fetch_add(bytes) + bytes;
  if (limit_ > 0 && now > limit_) {
    live_ -= bytes;
    throw Exception(Error{.code = Errc::kOutOfMemory,
                          .message = text(name_, ": an allocation of ", format_bytes(bytes), " does not fit: ", format_bytes(now - bytes), " of ",
                                          format_bytes(limit_), " are live; raise gpu_memory_bytes, use more micro-batches or shard over more ranks")});
  }
  std::int64_t peak = peak_;
  while (now > peak && !peak_.compare_exchange_weak(peak, now)) {
  }
}

DeviceBudgets::DeviceBudgets() {
  std::lock_guard lock(install_mutex);
  if (installed++ > 0) return;
  if (counting == nullptr || counting->below() != c10::GetCPUAllocator()) counting = new CountingAllocator(c10::GetCPUAllocator());
  c10::SetCPUAllocator(counting, 1);
}

DeviceBudgets::~DeviceBudgets() {
  std::lock_guard lock(install_mutex);
  if (--installed > 0 || c10::GetCPUAllocator() != counting) return;  // the host put its own on top since
  c10::SetCPUAllocator(counting->below(), 1);
}

std::shared_ptr<BudgetAccount> DeviceBudgets::account(std::string name, std::int64_t limit_bytes) const {
  return std::make_shared<BudgetAccount>(std::move(name), limit_bytes);
}

BudgetScope::BudgetScope(std::shared_ptr<BudgetAccount> account) : before_(std::exchange(current_account, std::move(account))) {}
BudgetScope::~BudgetScope() { current_account = std::move(before_); }

}  // namespace troupe
