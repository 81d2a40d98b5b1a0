#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace bench {

/// One line of build/bench/results.json. ratio = value / baseline.
struct Row {
  std::string name = {};
  std::optional<double> value = {};
  std::string unit = {};
  std::optional<double> baseline = {};
  std::optional<double> ratio = {};
  std::string target = {};            ///< "ratio <= 0.7"
  std::optional<bool> met = {};       ///< Null: reported only, or not measured.
  std::string reason = {};            ///< Spread, or why there is no value.
};

/// Median of `rounds` interleaved pairs: value() and baseline() one after the other each time, so that both
/// see the same machine. The ratio is the median of the pairs' ratios; `reason` holds the quartiles.
[[nodiscard]] Row paired(std::string name, std::string unit, int rounds, const std::function<double()>& value, const std::function<double()>& baseline);

/// Median of `rounds` single measurements.
[[nodiscard]] Row single(std::string name, std::string unit, int rounds, const std::function<double()>& value);

/// Sets target and met. `at_most`: the measured number must not exceed `limit`; else it must reach it.
enum class Of { kRatio, kValue };
[[nodiscard]] Row with_target(Row row, Of of, bool at_most, double limit);

/// Prints rows as a table and merges them into `path` (rows of other names stay), written whole or not at all.
/// False when it can't be written.
[[nodiscard]] bool publish(const std::vector<Row>& rows, const std::string& path);

}  // namespace bench
