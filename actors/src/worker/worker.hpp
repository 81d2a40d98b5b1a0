#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "link.hpp"
#include "process/process.hpp"
#include "protocol.hpp"

namespace troupe::detail {

/// One worker process, as its host sees it: from its start to its death. A restarted one is another object.
/// Thread: any.
class Worker {
 public:
  using Fill = std::function<void(WireWriter&)>;

  Worker(Clock& clock, std::shared_ptr<Process> process, Descriptor socket, std::uint32_t incarnation);
  ~Worker();
  void start();
  /// The worker's first word. Fails with: kTimeout, kPeerLost, kMismatch for another program.
  [[nodiscard]] Result<void> wait_hello(Deadline until);

  /// Sends a request and waits for its answer. `doing` is for the error of a worker that dies meanwhile.
  /// Fails with: kPeerLost with how the worker ended, kLimit, kTimeout (the request goes on), what the worker answered.
  [[nodiscard]] Result<std::vector<std::byte>> ask(Frame kind, const std::string& doing, const Fill& fill, Deadline until);
  /// Without an answer. A worker that is lost is no error: its ranks tell of it.
  void tell(Frame kind, const Fill& fill);

  /// Ends the process, because `why`.
  void give_up(const std::string& why);
  [[nodiscard]] bool lost() const { return is_lost_; }
  [[nodiscard]] std::uint32_t incarnation() const noexcept { return incarnation_; }
  [[nodiscard]] TimePoint last_heard() const noexcept { return last_heard_.load(); }
  [[nodiscard]] Process& process() noexcept { return *process_; }

 private:
  struct Waiter {
    std::string doing;
    std::optional<Result<std::vector<std::byte>>> answer;
  };

  void on_frame(std::span<const std::byte> frame);
  void on_end(const Error& why);
  [[nodiscard]] Error death(const std::string& doing) const;

  Clock& clock_;
  const std::shared_ptr<Process> process_;
  const std::uint32_t incarnation_;
  std::mutex mutex_;
  Condition changed_;
  std::map<std::uint64_t, Waiter> waiters_;
  std::uint64_t next_number_ = 1;
  std::optional<Result<void>> hello_;
  std::string given_up_;                 ///< Why we ended it, or empty.
  std::string how_;                      ///< It ended.
  std::atomic<bool> is_lost_{false};
  std::atomic<TimePoint> last_heard_;
  Link link_;                            ///< Last: its thread uses the others.
};

}  // namespace troupe::detail
