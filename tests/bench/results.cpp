#include "results.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

namespace bench {
namespace {

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

std::string spread(const std::vector<double>& values) {
  char out[80];
  std::snprintf(out, sizeof out, "quartiles %.3g .. %.3g of %zu", quantile(values, 0.25), quantile(values, 0.75), values.size());
  return out;
}

nlohmann::json to_json(const Row& row) {
  const auto number = [](const std::optional<double>& value) { return value ? nlohmann::json(*value) : nlohmann::json(nullptr); };
  return {{"name", row.name}, {"value", number(row.value)}, {"unit", row.unit}, {"baseline", number(row.baseline)}, {"ratio", number(row.ratio)},
          {"target", row.target}, {"met", row.met ? nlohmann::json(*row.met) : nlohmann::json(nullptr)}, {"reason", row.reason}};
}

std::string show(const std::optional<double>& value) {
  if (!value) return "-";
  char out[32];
  std::snprintf(out, sizeof out, "%.4g", *value);
  return out;
}

}  // namespace

Row paired(std::string name, std::string unit, int rounds, const std::function<double()>& value, const std::function<double()>& baseline) {
  std::vector<double> values, baselines, ratios;
  for (int round = 0; round < rounds; ++round) {
    values.push_back(value());
    baselines.push_back(baseline());
    ratios.push_back(values.back() / baselines.back());
  }
  return {std::move(name), quantile(values, 0.5), std::move(unit), quantile(baselines, 0.5), quantile(ratios, 0.5), "", {}, "ratio " + spread(ratios)};
}

Row single(std::string name, std::string unit, int rounds, const std::function<double()>& value) {
  std::vector<double> values;
  for (int round = 0; round < rounds; ++round) values.push_back(value());
  return {std::move(name), quantile(values, 0.5), std::move(unit), {}, {}, "", {}, spread(values)};
}

Row with_target(Row row, Of of, bool at_most, double limit) {
  char target[48];
  std::snprintf(target, sizeof target, "%s %s %g", of == Of::kRatio ? "ratio" : "value", at_most ? "<=" : ">=", limit);
  row.target = target;
  const auto& number = of == Of::kRatio ? row.ratio : row.value;
  if (number) row.met = at_most ? *number <= limit : *number >= limit;
  return row;
}

bool publish(const std::vector<Row>& rows, const std::string& path) {
  std::printf("%-26s %12s %-6s %12s %9s  %-16s %-4s %s\n", "name", "value", "unit", "baseline", "ratio", "target", "met", "");
  for (const Row& row : rows) {
    std::printf("%-26s %12s %-6s %12s %9s  %-16s %-4s %s\n", row.name.c_str(), show(row.value).c_str(), row.unit.c_str(), show(row.baseline).c_str(),
                show(row.ratio).c_str(), row.target.c_str(), !row.met ? "-" : *row.met ? "yes" : "NO", row.reason.c_str());
  }
  nlohmann::json all = nlohmann::json::array();
  if (std::ifstream before(path); before) {
    nlohmann::json old = nlohmann::json::parse(before, nullptr, false);
    for (auto& row : old.is_array() ? old : nlohmann::json::array()) {
      const bool again = std::any_of(rows.begin(), rows.end(), [&](const Row& mine) { return row.value("name", "") == mine.name; });
      if (!again) all.push_back(row);
    }
  }
  for (const Row& row : rows) all.push_back(to_json(row));
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  const std::string part = path + ".part";
  {
    std::ofstream out(part);
    out << all.dump(1) << "\n";
    if (!out) return false;
  }
  std::filesystem::rename(part, path, error);
  return !error;
}

}  // namespace bench
