#include <algorithm>
#include <chrono>
#include <cmath>

#include <nlohmann/json.hpp>

#include "chat_source.hpp"
#include "checkpoint.hpp"
#include "commands.hpp"
#include "layout_flags.hpp"

namespace qwen_vl {

using troupe::Result;

Result<std::string> run(const EvalCommand& command) {
  const auto start = std::chrono::steady_clock::now();
  const auto layout = parse_layout(command.vision, command.language, command.dtype);
  if (!layout) return troupe::fail(layout.error());
  const auto preparation = read_preparation(command.model);
  if (!preparation) return troupe::fail(preparation.error());
  auto model = parallelize(preparation->model, *layout);
  if (!model) return troupe::fail(model.error());
  if (auto ok = load_checkpoint(*model, preparation->model, command.model); !ok) return troupe::fail(ok.error());
  const ChatSourceConfig config{.data = command.data, .folder = command.model, .question = command.question, .batch = command.batch, .limit = command.limit, .once = true,
                                .dtype = layout->dtype};
  auto source = model->graph.source<ChatSource>({.name = "data", .prefetch = 2}, config);
  if (!source) return troupe::fail(source.error());
  feed(*model, *source);
  double sum = 0;
  std::int64_t valid = 0, samples = 0;
  for (;;) {
    const auto report = model->graph.evaluate({.source = source->id()});
    if (!report && report.error().code == troupe::Errc::kEndOfData) break;
    if (!report) return troupe::fail(report.error());
    sum += report->loss * static_cast<double>(report->valid);
    valid += report->valid;
    samples += report->samples;
  }
  const double loss = sum / static_cast<double>(std::max<std::int64_t>(valid, 1));
  const nlohmann::json line = {{"command", "eval"}, {"loss", loss}, {"perplexity", std::exp(loss)}, {"tokens", valid}, {"conversations", samples},
                               {"seconds", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()}};
  return line.dump();
}

}  // namespace qwen_vl
