#include <algorithm>

#include <troupe/base/text.hpp>
#include <troupe/base/units.hpp>
#include "pool_core.hpp"

namespace troupe::detail {

/// POOL-3: counts messages and bytes accepted and not complete; blocks or refuses past the limits.
std::optional<Error> PoolCore::admit(Lock& lock, const CallPtr& call) {
  if (call->only_rank == kRebuild) return std::nullopt;  // the way out of a pool whose queues stand still
  const auto fits = [&] {
    // one call larger than the limit may pass alone, or it never could
    const bool bytes_fit = accepted_bytes_ == 0 || accepted_bytes_ + call->argument_bytes <= options.limit_bytes;
    return accepted_messages_ < options.limit_messages && bytes_fit;
  };
  if (!fits()) {
    const std::string state = text("pool ", options.name, " holds ", accepted_messages_, " of ", options.limit_messages, " calls and ",
                                   format_bytes(accepted_bytes_), " of ", format_bytes(options.limit_bytes), "; ", call->verb.name, " adds ",
                                   format_bytes(call->argument_bytes));
    if (options.on_full == OnFull::kFail) return Error{.code = Errc::kLimit, .message = state, .origin = origin(-1)};
    const RankState* caller = current_rank();
    if (caller != nullptr && &caller->pool == this) {
      return Error{.code = Errc::kDeadlock, .message = state + "; the caller is a rank of this pool and can't wait for it", .origin = origin(-1)};
    }
    ++blocked_callers_;
    const bool admitted = room_.wait(lock, call->queue_deadline, [&] { return closing_ || failed_ || fits(); });
    --blocked_callers_;
    if (!admitted) return Error{.code = Errc::kTimeout, .message = state + "; it stayed full until the queue deadline", .origin = origin(-1)};
    if (auto why = refusal(call)) return why;
  }
  ++accepted_messages_;
  accepted_bytes_ += call->argument_bytes;
  arm_expiry(call->queue_deadline);
  return std::nullopt;
}

/// With the mutex held, once no rank needs the call's arguments.
void PoolCore::release(const CallPtr& call) {
  if (call->only_rank == kRebuild) return;
  --accepted_messages_;
  accepted_bytes_ -= call->argument_bytes;
  if (blocked_callers_ > 0) room_.notify_all();
}

/// One timer per pool, for the first deadline of those that wait in a queue (SUP-2). That is not always the oldest
/// ticket's: a caller that waited for room brings an earlier deadline than calls before it.
void PoolCore::arm_expiry(Deadline first) {
  if (first >= expiry_) return;
  if (!expiry_.is_never()) services->transport.executor->cancel(expiry_timer_);
  expiry_ = first;
  expiry_timer_ = services->transport.executor->post_at(first, [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->expire();
  });
}

void PoolCore::expire() {
  ToRun to_run;
  {
    Lock lock(mutex_);
    expiry_ = Deadline::never();
    const TimePoint now = services->clock().now();
    Deadline next = Deadline::never();
    const auto sweep = [&](std::deque<CallPtr>& queue) {
      for (const CallPtr& call : queue) {
        if (call->complete() || call->generation != 0) continue;  // begun on some rank: no longer queued
        if (call->queue_deadline.time() > now) {
          next = std::min(next, call->queue_deadline);
          continue;
        }
        finish(call, std::make_shared<const Error>(Error{.code = Errc::kTimeout,
                     .message = text(call->verb.name, " was not started within the queue deadline; pool ", options.name, " is busy"), .origin = origin(-1)}), to_run);
      }
    };
    for (auto& slot : slots_) sweep(slot->queue);
    sweep(shared_);
    arm_expiry(next);
  }
  run_later(std::move(to_run));
}

}  // namespace troupe::detail
