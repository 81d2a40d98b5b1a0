#pragma once

#include <functional>
#include <thread>
#include <vector>

#include <troupe/torch/rank_scope.hpp>
#include <troupe/transport/group.hpp>

namespace troupe::test {

/// Runs fn(group, rank) on `size` threads, each with its end of one group.
inline void on_ranks(int size, const std::function<void(transport::Group&, int)>& fn) {
  const auto context = transport::make_context();
  auto members = or_throw(transport::open_inproc_group(context, "tp", size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const RankThreadScope scope(1);
      auto& group = *members[static_cast<std::size_t>(rank)];
      group.begin(1, context.clock->after(std::chrono::seconds(30)));
      fn(group, rank);
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace troupe::test
