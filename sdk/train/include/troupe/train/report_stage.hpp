#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <troupe/stage/stage.hpp>
#include <troupe/train/report.hpp>

namespace troupe {

namespace detail {
[[nodiscard]] Result<ReportStage> describe_layout(const Pool<StageHost>& pool, const std::vector<std::int64_t>& peak_bytes, Duration timeout);
}

/// How a stage is laid out, for a report. `peak_bytes` is StepReport::peak_bytes of the stage; empty: not tracked. Asks every
/// rank what it holds. Fails with: kTimeout, and what any call fails with.
template <class M>
[[nodiscard]] Result<ReportStage> report_stage(const Stage<M>& stage, const std::vector<std::int64_t>& peak_bytes, Duration timeout) {
  return detail::describe_layout(stage.pool(), peak_bytes, timeout);
}

}  // namespace troupe
