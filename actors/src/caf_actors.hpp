#pragma once

#include <cstdint>
#include <memory>

#include <caf/all.hpp>

#include "caf_front.hpp"

namespace troupe::detail {

/// One call as it travels between actors of one process: by reference, never serialised.
struct CafCall {
  std::shared_ptr<CallBase> call;
  int only_rank = -1;
};

using SubmitAtom = caf::atom_constant<caf::atom("submit")>;

/// The one wire interface of all pools: a call in, its completion out (the value stays in the call).
using PoolActor = caf::typed_actor<caf::replies_to<SubmitAtom, CafCall>::with<CafCall>>;

/// The front of a pool for other actors, and the system they live in.
[[nodiscard]] PoolActor front_of(CafWorld& world, const std::shared_ptr<PoolCore>& pool);
[[nodiscard]] caf::actor_system& system_of(CafWorld& world);

}  // namespace troupe::detail

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::detail::CafCall)
