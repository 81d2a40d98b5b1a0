#include <future>
#include <thread>

#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <troupe/base/units.hpp>
#include <troupe/stage/tensor_payload.hpp>
#include <troupe/torch/budget.hpp>
#include <troupe/torch/rank_scope.hpp>
#include <troupe/torch/tensor.hpp>

namespace troupe {
namespace {

using namespace troupe::literals;

TEST(Tensors, AreLentAndAdoptedWithoutACopy) {
  for (const auto dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kBool, at::kLong, at::kChar, at::kByte, at::kComplexFloat}) {
    at::Tensor tensor = at::ones({3, 4}, dtype);
    transport::Tensor lent = lend(tensor);
    EXPECT_EQ(lent.desc.bytes(), static_cast<std::int64_t>(tensor.nbytes()));
    const void* data = tensor.data_ptr();
    tensor = at::Tensor();
    const at::Tensor back = adopt(lent);   // T1, T3: every dtype
    lent = {};
    EXPECT_EQ(back.data_ptr(), data);
    EXPECT_TRUE(at::equal(back, at::ones({3, 4}, dtype)));
  }
  EXPECT_EQ(adopt(lend(at::arange(12).reshape({3, 4}).t())).strides(), (at::IntArrayRef{1, 4}));   // L1
  EXPECT_EQ(lend(at::scalar_tensor(3)).desc.elements(), 1);                                      // T2
  EXPECT_EQ(lend(at::empty({0, 5})).desc.bytes(), 0);                                           // Z1
  EXPECT_THROW((void)lend(at::Tensor()), Exception);
}

// TRN-3
TEST(Tensors, KnowTheirAlignment) {
  const at::Tensor tensor = at::zeros({64}, at::kDouble);
  EXPECT_TRUE(is_aligned(tensor));
  EXPECT_FALSE(is_aligned(tensor.narrow(0, 1, 8)));
  EXPECT_TRUE(is_aligned(tensor.narrow(0, 8, 8)));
}

// POOL-5, A1: writes are seen, also through raw pointers
TEST(Tensors, FingerprintsSeeWrites) {
  const at::Tensor tensor = at::zeros({1000}, at::kDouble);
  const auto before = Payload<at::Tensor>::fingerprint(tensor);
  EXPECT_EQ(Payload<at::Tensor>::fingerprint(tensor), before);
  tensor.add_(1);
  const auto in_place = Payload<at::Tensor>::fingerprint(tensor);
  EXPECT_NE(in_place, before);
  std::memset(tensor.data_ptr(), 0x55, tensor.nbytes());
  EXPECT_NE(Payload<at::Tensor>::fingerprint(tensor), in_place);
}

// EMB: only the thread itself changes
TEST(RankScopes, LeaveOtherThreadsTheirThreads) {
  const auto of_new_thread = [] { return std::async(std::launch::async, [] { return at::get_num_threads(); }).get(); };
  const int before = of_new_thread();
  std::thread rank([&] {
    const RankThreadScope scope(1);
    EXPECT_EQ(at::get_num_threads(), 1);
    EXPECT_EQ(of_new_thread(), before);
  });
  rank.join();
  EXPECT_EQ(of_new_thread(), before);
}

// RES-5: counted, enforced, typed; other threads pass
TEST(Budgets, CountAndRefuse) {
  const DeviceBudgets budgets;
  const auto account = budgets.account("vision rank 0", 1_MiB);
  const auto elsewhere = std::async(std::launch::async, [] { return at::zeros({1 << 20}, at::kDouble); }).get();
  at::Tensor kept;
  {
    const BudgetScope scope(account);
    kept = at::zeros({1 << 16}, at::kDouble);
    EXPECT_EQ(account->live(), 1 << 19);
    try {
      (void)at::zeros({1 << 17}, at::kDouble);
      FAIL() << "past the budget";
    } catch (const Exception& refused) {
      EXPECT_EQ(refused.error().code, Errc::kOutOfMemory);
      EXPECT_NE(refused.error().message.find("vision rank 0: an allocation of 1.00 MiB"), std::string::npos) << refused.what();
    }
    EXPECT_EQ(account->live(), 1 << 19) << "nothing was taken";
    { const BudgetScope scratch(nullptr); (void)at::zeros({1 << 20}, at::kDouble); }
    (void)at::zeros({100}, at::kDouble);
  }
  EXPECT_EQ(account->peak(), (1 << 19) + 800);
  std::thread other([&] { kept = at::Tensor(); });   // freed elsewhere, booked where it was taken
  other.join();
  EXPECT_EQ(account->live(), 0);
}

TEST(Budgets, HoldInsideBackwardToo) {
  const DeviceBudgets budgets;
  const auto account = budgets.account("rank", 3_MiB);
  std::thread rank([&] {
    const RankThreadScope scope(1);
    const BudgetScope bound(account);
    const at::Tensor x = at::ones({1 << 17}, at::kDouble).requires_grad_(true);
    const at::Tensor y = (x * x).sum();
    EXPECT_THROW(
        {
          y.backward();
          (void)(x + x);
        },
        Exception);
  });
  rank.join();
  EXPECT_EQ(account->live(), 0);
}

// RES-5: a rank survives what its backward was refused, and can go on
TEST(Budgets, RefusedInsideBackwardLeaveTheRankUsable) {
  const DeviceBudgets budgets;
  const auto account = budgets.account("rank", 4_MiB);
  std::thread rank([&] {
    const RankThreadScope scope(1);
    const BudgetScope bound(account);
    const at::Tensor x = at::ones({1 << 17}, at::kDouble).requires_grad_(true);   // 1 MiB
    {
      const at::Tensor y = x.exp().exp();   // 2 MiB kept for backward
      const at::Tensor ballast = at::zeros({1 << 16}, at::kDouble);
      try {
        y.sum().backward();
        FAIL() << "two gradients of 1 MiB do not fit beside 3.5 MiB";
      } catch (const Exception& refused) {
        EXPECT_EQ(refused.error().code, Errc::kOutOfMemory);
      }
    }
    x.mutable_grad() = at::Tensor();
    x.sum().backward();
    EXPECT_EQ(x.grad().sum().item<double>(), 1 << 17);
  });
  rank.join();
  EXPECT_EQ(account->live(), 0);
}

// a bare pointer freed while no budget is installed can't be told to its account: its address tells when it is used again
TEST(Budgets, FindOutWhatWasFreedBehindTheirBack) {
  std::shared_ptr<BudgetAccount> first;
  void* block = nullptr;
  {
    const DeviceBudgets budgets;
    first = budgets.account("first", 0);
    const BudgetScope bound(first);
    block = at::getCPUAllocator()->raw_allocate(40000);
  }
  at::getCPUAllocator()->raw_deallocate(block);
  const DeviceBudgets budgets;
  const auto second = budgets.account("second", 0);
  const BudgetScope bound(second);
  const auto again = at::getCPUAllocator()->allocate(40000);
  if (again.get() != block) GTEST_SKIP() << "the system gave another address";
  EXPECT_EQ(first->live(), 0);
  EXPECT_EQ(second->live(), 40000);
}

TEST(Budgets, GoWithTheLastObject) {
  const auto* before = at::getCPUAllocator();
  {
    const DeviceBudgets first;
    const DeviceBudgets second;
    EXPECT_NE(at::getCPUAllocator(), before);
  }
  EXPECT_EQ(at::getCPUAllocator(), before);
}

}  // namespace
}  // namespace troupe
