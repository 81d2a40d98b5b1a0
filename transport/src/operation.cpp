#include "operation.hpp"

#include <cassert>
#include <utility>

namespace troupe::transport {

bool Operation::State::complete(Result<Transferred> result) {
  std::shared_ptr<Done> left;
  {
    std::lock_guard lock(mutex_);
    if (result_) return false;
    result_.emplace(std::move(result));
    // handed over before a waiter can see the end: whoever has seen it may let the executor go
    if (then_) left = post(std::exchange(then_, nullptr));
    done_.store(true, std::memory_order_release);
    completed_.notify_all();
  }
  if (left) (*left)(*result_);
  return true;
}

bool Operation::State::wait_until(Deadline until) {
  if (done()) return true;
  std::unique_lock lock(mutex_);
  return completed_.wait(lock, until, [this] { return result_.has_value(); });
}

Result<Transferred> Operation::State::wait() {
  if (!wait_until(deadline_)) expire();
  return *result_;
}

void Operation::State::then(Done done) {
  {
    std::lock_guard lock(mutex_);
    assert(!then_ && "an operation takes one function");
    if (!result_) {
      then_ = std::move(done);
      return;
    }
  }
  if (const auto left = post(std::move(done))) (*left)(*result_);
}

// SUP-7: a function never runs inside the call that started or ended its operation, unless the executor has ended:
// then nobody else will run it (TRN-2), and it is given back.
std::shared_ptr<Operation::Done> Operation::State::post(Done done) {
  auto shared = std::make_shared<Done>(std::move(done));
  if (executor_->post([shared, result = *result_] { (*shared)(result); })) return nullptr;
  return shared;
}

void Operation::State::expire() {
  complete(fail(Errc::kTimeout, "the operation's deadline passed before its peer answered"));
}

bool Operation::done() const { return state_ && state_->done(); }

Result<Transferred> Operation::wait() const {
  assert(state_ && "wait() on an operation that was never started");
  return state_->wait();
}

bool Operation::wait_until(Deadline until) const {
  assert(state_ && "wait_until() on an operation that was never started");
  return state_->wait_until(until);
}

void Operation::then(Done done) const {
  assert(state_ && "then() on an operation that was never started");
  state_->then(std::move(done));
}

Operation ended_operation(const Services& services, Result<Transferred> result) {
  auto state = std::make_shared<Operation::State>(services, Deadline::never());
  state->complete(std::move(result));
  return Operation(std::move(state));
}

}  // namespace troupe::transport
