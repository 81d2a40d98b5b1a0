#pragma once

#include <memory>

#include <troupe/transport/channel.hpp>

namespace troupe::transport {

/// A Context as channels, groups and operations keep it: without owning the executor, since whoever
/// drops the last owner on the executor's own thread would wait for himself.
struct Services {
  explicit Services(const Context& context)
      : clock(context.clock), executor(context.executor.get()), log(context.log), counters(context.counters) {}

  std::shared_ptr<Clock> clock;
  Executor* executor;
  std::shared_ptr<Log> log;
  std::shared_ptr<TransferCounters> counters;
};

/// What every backend demands of a channel. Fails with: kInvalidArgument when a credit is < 1.
[[nodiscard]] Result<void> check(const ChannelOptions& options);

}  // namespace troupe::transport
