#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace troupe {

enum class Schedule : std::uint8_t {
  kSequential,  ///< Each micro-batch forward through all stages, then backward, before the next.
};

/// One thing to submit. A schedule is a list of these: pure data, planned once per step (EDG-4).
struct Instruction {
  enum class Kind : std::uint8_t { kForward, kBackward };
  Kind kind = Kind::kForward;
  int stage = 0;        ///< Index in the order of the graph, sources of data first.
  int micro_batch = 0;
  friend bool operator==(const Instruction&, const Instruction&) = default;
};

/// The instructions of one step: stages 0 .. stages-1 in topological order, all micro-batches.
/// Every stage sees its micro-batches in order, so gradients accumulate in micro-batch order (NUM-8).
[[nodiscard]] std::vector<Instruction> make_schedule(Schedule schedule, int stages, int micro_batches);

}  // namespace troupe
