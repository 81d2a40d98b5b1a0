#include <troupe/actors/call.hpp>

#include <utility>

#include <troupe/base/text.hpp>
#include "pool_core.hpp"

namespace troupe::detail {

bool CallBase::finish(std::shared_ptr<const Error> error, std::vector<Completion>& to_run) {
  std::lock_guard lock(mutex_);
  if (complete_.load(std::memory_order_relaxed)) return false;  // SUP-1: once
  error_ = std::move(error);
  complete_.store(true, std::memory_order_release);
  for (auto& done : done_) to_run.push_back(std::move(done));
  done_.clear();
  changed_.notify_all();
  return true;
}

bool CallBase::wait(Deadline deadline) {
  if (complete()) return true;
  std::unique_lock lock(mutex_);
  return changed_.wait(lock, deadline, [this] { return complete_.load(std::memory_order_relaxed); });
}

bool CallBase::wait_unless(Deadline deadline, const CallBase& reader) {
  if (complete()) return true;
  std::unique_lock lock(mutex_);
  return changed_.wait(lock, deadline, [&] { return complete_.load(std::memory_order_relaxed) || reader.complete(); });
}

void CallBase::poke() {
  std::lock_guard lock(mutex_);
  changed_.notify_all();
}

bool CallBase::add_done(Done done, bool at_once) {
  std::lock_guard lock(mutex_);
  if (complete_.load(std::memory_order_relaxed)) return false;
  done_.push_back({std::move(done), at_once});
  return true;
}

Result<void> wait_for(CallBase& call, Deadline deadline) {
  if (!call.complete()) {
    RankState* const rank = current_rank();
    WaitGraph* const waits = rank != nullptr ? &rank->pool.services->waits : nullptr;
    if (waits != nullptr) {
      if (auto entered = waits->enter(*rank, call.shared_from_this()); !entered) return entered;
    }
    const bool complete = call.wait(deadline);
    if (waits != nullptr) waits->leave(*rank);
    if (!complete) {
      return fail(Errc::kTimeout, text("no answer from ", call.verb.name, " (ticket ", call.ticket, ") within the caller's deadline; the call goes on"),
                  {.pool = call.pool ? call.pool->options.name : std::string{}});
    }
  }
  if (call.error()) return fail(*call.error());
  return {};
}

Deadline deadline_of(CallBase& call, Duration duration) {
  if (call.complete() || !call.pool) return Deadline::never();
  return call.pool->services->clock().after(duration);
}

void when_complete(const std::shared_ptr<CallBase>& call, CallBase::Done done) {
  const auto shared = std::make_shared<CallBase::Done>(std::move(done));
  if (call->add_done([shared] { (*shared)(); })) return;
  // complete already: still never inside the caller (SUP-7)
  if (call->pool && call->pool->services->transport.executor->post([shared] { (*shared)(); })) return;
  (*shared)();  // the executor has ended: nobody else will
}

}  // namespace troupe::detail
