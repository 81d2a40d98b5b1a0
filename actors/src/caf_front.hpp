#pragma once

#include <memory>

#include <troupe/actors/pool.hpp>

namespace troupe::detail {

struct Services;
class RuntimeCore;

/// The actor system of a runtime behind a face without CAF: started when the actor world is first used, so
/// that programs that never do pay no threads for it.
class CafWorld {
 public:
  virtual ~CafWorld() = default;
  [[nodiscard]] static Result<std::shared_ptr<CafWorld>> create(std::shared_ptr<Services> services);
  /// Ends every actor; whoever has not by `until` is killed.
  virtual void stop(Deadline until) = 0;
};

[[nodiscard]] Result<std::shared_ptr<CafWorld>> caf_world(const std::shared_ptr<RuntimeCore>& runtime);

}  // namespace troupe::detail
