#pragma once

#include "training.hpp"

namespace qwen_vl {

/// Writes results.json and report.html into config.out. Fails with: kIo naming the file.
[[nodiscard]] troupe::Result<void> write_reports(const TrainConfig& config, const Training& training);

}  // namespace qwen_vl
