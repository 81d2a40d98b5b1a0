#include <troupe/torch/budget.hpp>

#include <array>
#include <mutex>
#include <unordered_map>
#include <utility>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <troupe/base/result.hpp>
#include <troupe/base/text.hpp>
#include <troupe/base/units.hpp>

namespace troupe {
namespace {

thread_local std::shared_ptr<BudgetAccount> current_account;

/// Blocks that were booked, by address. LibTorch's raw_deallocate() hands back bare pointers and demands that a
/// block's context is its address, so the owner can't travel in the context.
class Bookings {
 public:
  struct Booking {
    std::shared_ptr<BudgetAccount> account;
    std::int64_t bytes = 0;
  };

  void add(const void* block, Booking booking) {
    Part& part = part_of(block);
    std::lock_guard lock(part.mutex);
    Booking& at = part.by_block[block];
    // a bare pointer freed while ours was not installed left its booking; the address is used again now
    if (at.account) at.account->give_back(at.bytes);
    at = std::move(booking);
  }
  /// The booking of `block`, taken out; an empty one when it has none.
  Booking take(const void* block) {
    Part& part = part_of(block);
    std::lock_guard lock(part.mutex);
    const auto found = part.by_block.find(block);
    if (found == part.by_block.end()) return {};
    Booking out = std::move(found->second);
    part.by_block.erase(found);
    return out;
  }

 private:
  struct Part {
    std::mutex mutex;
    std::unordered_map<const void*, Booking> by_block;
  };
  Part& part_of(const void* block) { return parts_[(reinterpret_cast<std::uintptr_t>(block) >> 6) % parts_.size()]; }
  std::array<Part, 32> parts_;
};

void free_booked(void* block);

class CountingAllocator final : public c10::Allocator {
 public:
  explicit CountingAllocator(c10::Allocator* below) : below_(below) {}

  c10::DataPtr allocate(std::size_t bytes) override {
    if (!current_account || bytes == 0) return below_->allocate(bytes);
    const auto wanted = static_cast<std::int64_t>(bytes);
    current_account->take(wanted);
    try {
      c10::DataPtr block = below_->allocate(bytes);
      bookings.add(block.get(), {current_account, wanted});
      const c10::Device device = block.device();
      void* const data = block.release_context();
      return {data, data, &free_booked, device};
    } catch (...) {
      current_account->give_back(wanted);
      throw;
    }
  }
  [[nodiscard]] c10::DeleterFnPtr raw_deleter() const override { return &free_booked; }
  void copy_data(void* target, const void* source, std::size_t bytes) const override { below_->copy_data(target, source, bytes); }
  [[nodiscard]] c10::Allocator* below() const { return below_; }

  Bookings bookings;

 private:
  c10::Allocator* below_;
};

/// LibTorch's registry of allocators is process-wide, so is the count of who asked for ours. The allocator is
/// never destroyed: blocks may outlive whoever installed it.
std::mutex install_mutex;
int installed = 0;
CountingAllocator* counting = nullptr;

/// Also gets blocks that were never booked: raw_deallocate() asks the allocator of the day.
void free_booked(void* block) {
  const auto booking = counting->bookings.take(block);
  if (booking.account) booking.account->give_back(booking.bytes);
  counting->below()->raw_deleter()(block);
}

}  // namespace

void BudgetAccount::take(std::int64_t bytes) {
  std::int64_t before = live_;
  // compared before it is added: a refused request must not make one that fits fail in another thread meanwhile
  do {
    if (limit_ > 0 && before + bytes > limit_) {
      throw Exception(Error{.code = Errc::kOutOfMemory,
                            .message = text(name_, ": an allocation of ", format_bytes(bytes), " does not fit: ", format_bytes(before), " of ",
                                            format_bytes(limit_), " are live; raise gpu_memory_bytes, use more micro-batches or shard over more ranks")});
    }
  } while (!live_.compare_exchange_weak(before, before + bytes));
  std::int64_t peak = peak_;
  while (before + bytes > peak && !peak_.compare_exchange_weak(peak, before + bytes)) {
  }
}

DeviceBudgets::DeviceBudgets() {
  std::lock_guard lock(install_mutex);
  if (installed++ > 0) return;
  if (counting == nullptr) {
    // only over an allocator that can free bare pointers, as LibTorch's own can
    if (c10::GetCPUAllocator()->raw_deleter() == nullptr) {
      --installed;
      throw Exception(Error{.code = Errc::kUnavailable, .message = "the process's CPU allocator can't be wrapped (no raw deleter): turn track_memory off"});
    }
    counting = new CountingAllocator(c10::GetCPUAllocator());
  }
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
