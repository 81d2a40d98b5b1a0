#pragma once

#include <cstring>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include <troupe/transport/group.hpp>

#include "tensors.hpp"

namespace troupe::transport::test {

struct GroupBackend {
  std::string name;
  Result<std::vector<std::unique_ptr<Group>>> (*open)(const Context&, const std::string&, int);
};
inline void PrintTo(const GroupBackend& backend, std::ostream* out) { *out << backend.name; }

/// What every backend promises of its groups, for each size.
class GroupContract : public testing::TestWithParam<std::tuple<GroupBackend, int>> {
 protected:
  GroupContract() { reopen(); }
  void reopen() {
    auto opened = std::get<0>(GetParam()).open(context_, "group", size());
    ASSERT_TRUE(opened) << opened.error().describe();
    members_ = std::move(*opened);
    for (auto& member : members_) member->begin(++ticket_ == 0 ? 1 : 7, soon(context_));
  }
  [[nodiscard]] int size() const { return std::get<1>(GetParam()); }
  /// Runs fn(member, its number) on a thread each.
  void run(const std::function<void(Group&, int)>& fn) {
    on_threads(size(), [&](int rank) { fn(*members_[static_cast<std::size_t>(rank)], rank); });
  }

  Context context_ = make_context();
  std::vector<std::unique_ptr<Group>> members_;
  std::uint64_t ticket_ = 0;
};
class GroupFailure : public GroupContract {};

inline std::string group_name(const testing::TestParamInfo<std::tuple<GroupBackend, int>>& info) {
  return std::get<0>(info.param).name + std::to_string(std::get<1>(info.param));
}

template <class T>
Tensor tensor_of(std::vector<T>& values, DType dtype) {
  return {values.data(), {dtype, {static_cast<std::int64_t>(values.size())}, {}, {}}, nullptr, nullptr};
}

}  // namespace troupe::transport::test
