#include <troupe/stage/schedule.hpp>

namespace troupe {

std::vector<Instruction> make_schedule(Schedule /*schedule*/, int stages, int micro_batches) {
  std::vector<Instruction> out;
  for (int micro = 0; micro < micro_batches; ++micro) {
    for (int stage = 0; stage < stages; ++stage) out.push_back({Instruction::Kind::kForward, stage, micro});
    for (int stage = stages - 1; stage >= 0; --stage) out.push_back({Instruction::Kind::kBackward, stage, micro});
  }
  return out;
}

}  // namespace troupe
