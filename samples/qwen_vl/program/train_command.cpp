#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "training.hpp"
#include "training_report.hpp"

namespace qwen_vl {

troupe::Result<std::string> run(const TrainConfig& config, const std::stop_token& stop) {
  const auto out = train(config, stop);
  if (!out) return troupe::fail(out.error());
  if (auto ok = write_reports(config, *out); !ok) return troupe::fail(ok.error());
  const nlohmann::json line = {{"command", "train"}, {"steps", out->losses.size()}, {"loss", out->losses.empty() ? nlohmann::json() : nlohmann::json(out->losses.back())},
                               {"seconds", out->seconds}, {"stopped", out->stopped}, {"model", out->folder}};
  return line.dump();
}

}  // namespace qwen_vl
