#include "commands.hpp"

#include <chrono>
#include <filesystem>
#include <system_error>

#include <nlohmann/json.hpp>

#include <troupe/base/text.hpp>
#include <troupe/train/safetensors.hpp>

#include "batch_file.hpp"
#include "checkpoint.hpp"
#include "layout_flags.hpp"
#include "verify.hpp"

namespace qwen_vl {

using troupe::Result;
using troupe::text;

Result<std::string> run(const VerifyCommand& command) {
  const auto start = std::chrono::steady_clock::now();
  VerifyOptions options;
  auto layout = parse_layout(command.vision, command.language, command.dtype);
  if (!layout) return troupe::fail(layout.error());
  options.layout = *layout;
  options.steps = command.steps;
  options.micro_batches = command.micro_batches;
  options.learning_rate = command.learning_rate;
  options.weight_decay = command.weight_decay;
  options.video = command.video_positions == "4" ? VideoPositions::kTransformers4 : VideoPositions::kTransformers5;
  const auto config = read_config(command.model);
  if (!config) return troupe::fail(config.error());
  const auto batch = read_batch(command.batch);
  if (!batch) return troupe::fail(batch.error());
  const auto load = [&](Model& model) { return load_checkpoint(model, *config, command.model); };
  const auto out = verify(*config, load, *batch, options);
  if (!out) return troupe::fail(out.error());
  if (auto ok = troupe::write_safetensors(command.out, *out); !ok) return troupe::fail(ok.error());
  const nlohmann::json line = {{"command", "verify"}, {"model", command.model}, {"vision", command.vision}, {"language", command.language}, {"dtype", command.dtype},
                               {"steps", command.steps}, {"loss", out->at("loss").item<double>()}, {"grad_norm", out->at("grad_norm").item<double>()},
                               {"tensors", out->size()}, {"out", command.out},
                               {"seconds", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()}};
  return line.dump();
}

}  // namespace qwen_vl
