#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "results.hpp"

namespace bench {

/// Seconds since some point.
[[nodiscard]] inline double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

[[nodiscard]] std::vector<Row> calls();      ///< call.*, calls.*
[[nodiscard]] std::vector<Row> spawn();      ///< spawn.threads8
[[nodiscard]] std::vector<Row> processes();  ///< call.process, spawn.process8, idle.cpu, restart.process
[[nodiscard]] std::vector<Row> handover();   ///< handover.*
[[nodiscard]] std::vector<Row> layer();      ///< host.layer_vs_hand
[[nodiscard]] std::vector<Row> step();       ///< step.overhead
[[nodiscard]] std::vector<Row> load();       ///< qwen.load*
[[nodiscard]] std::vector<Row> tokenizer();  ///< tokenizer.mb_per_s
[[nodiscard]] std::vector<Row> qwen();       ///< qwen.step_vs_transformers.*, qwen.generate

/// What this program does as the other side of a measurement; `what` is its argument: --caf-adder, --bare.
int serve(const std::string& what);

}  // namespace bench
