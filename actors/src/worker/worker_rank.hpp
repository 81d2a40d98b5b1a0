#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "pool_core.hpp"
#include "protocol.hpp"

namespace troupe::detail {

/// One rank in its worker: the object on its own thread, and one request after the other. The host sends the next when
/// it has the answer; queues, limits and failures are the host's.
/// Thread: any, but for what runs on its own.
class WorkerRank {
 public:
  using Answer = std::function<void(Result<std::vector<std::byte>>)>;

  WorkerRank(std::shared_ptr<PoolHome> home, int rank, std::shared_ptr<RankEnvironment> environment);
  ~WorkerRank();   ///< Joins its thread: after destroy() only, or when its thread is left on purpose.

  void make(std::uint64_t class_id, std::uint64_t generation, std::vector<std::byte> arguments, Answer answer);
  void run(const RunTicket& ticket, std::vector<std::byte> arguments, Answer answer);
  void destroy(Answer answer);
  void request_stop() { state_.stop.request_stop(); }
  [[nodiscard]] bool ended();
  /// True when its thread has ended by `until`; else it is left.
  [[nodiscard]] bool join(Deadline until);

 private:
  using Job = std::function<void()>;
  void post(Job job);
  void loop();
  void execute(const RunTicket& ticket, const std::vector<std::byte>& arguments, const Answer& answer);
  void clear();

  const std::shared_ptr<PoolHome> home_;
  const std::shared_ptr<RankEnvironment> environment_;
  RankState state_;
  Rank rank_;
  std::unique_ptr<RankEnvironment::Scope> scope_;
  std::shared_ptr<void> object_;
  std::mutex mutex_;
  Condition changed_;
  std::deque<Job> jobs_;
  bool ended_ = false;
  Thread thread_;
};

}  // namespace troupe::detail
