#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace troupe {

/// The tensor bytes of one rank against what it may hold. Thread: any.
class BudgetAccount {
 public:
  /// `limit_bytes` <= 0: counted, not limited.
  BudgetAccount(std::string name, std::int64_t limit_bytes) : name_(std::move(name)), limit_(limit_bytes) {}

  [[nodiscard]] std::int64_t live() const noexcept { return live_; }
  [[nodiscard]] std::int64_t peak() const noexcept { return peak_; }
  [[nodiscard]] std::int64_t limit() const noexcept { return limit_; }

  /// Throws Exception (kOutOfMemory) naming the account, asked, live and limit; nothing is taken then.
  void take(std::int64_t bytes);
  void give_back(std::int64_t bytes) noexcept { live_ -= bytes; }

 private:
  std::string name_;
  std::int64_t limit_;
  std::atomic<std::int64_t> live_{0};
  std::atomic<std::int64_t> peak_{0};
};

/// Replaces LibTorch's process-wide CPU allocator by one that books the bytes of threads with an account
/// and passes the others through; the last object restores the old one. A free is booked to the account that
/// took the bytes, on whatever thread it happens. Process-wide, so only by a named option (EMB, RES-5).
class DeviceBudgets {
 public:
  DeviceBudgets();
  ~DeviceBudgets();
  DeviceBudgets(const DeviceBudgets&) = delete;
  DeviceBudgets& operator=(const DeviceBudgets&) = delete;

  [[nodiscard]] std::shared_ptr<BudgetAccount> account(std::string name, std::int64_t limit_bytes) const;
};

/// Books this thread's allocations to `account` while it lives; null: to none (scratch on the host).
class BudgetScope {
 public:
  explicit BudgetScope(std::shared_ptr<BudgetAccount> account);
  ~BudgetScope();
  BudgetScope(const BudgetScope&) = delete;
  BudgetScope& operator=(const BudgetScope&) = delete;

 private:
  std::shared_ptr<BudgetAccount> before_;
};

}  // namespace troupe
