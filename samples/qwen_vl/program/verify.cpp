#include "verify.hpp"

#include <optional>
#include <utility>

#include <ATen/ATen.h>

#include <troupe/base/text.hpp>

namespace qwen_vl {
namespace {

using namespace std::chrono_literals;
using troupe::Result;
using Tensors = std::map<std::string, at::Tensor>;

constexpr troupe::Duration kTimeout = 10min;

/// The same batch again and again.
class Repeat {
 public:
  explicit Repeat(const Batch& batch) : batch_(batch) {}
  std::optional<Batch> next() { return batch_; }

 private:
  Batch batch_;
};

Result<void> add_looks(Model& model, const Assembled& assembled, const troupe::Source<Repeat>& source, Tensors& out) {
  const auto batch = source.next(kTimeout);
  if (!batch) return troupe::fail(batch.error());
  troupe::Tape tape = model.graph.evaluation_tape();
  auto images = model.graph.fetch(tape(model.vision, batch->get<&Batch::patches>(), batch->get<&Batch::coordinates>()), kTimeout);
  if (!images) return troupe::fail(images.error());
  at::Tensor tokens = at::empty_like(images->rows);
  tokens.index_copy_(0, at::tensor(assembled.original, at::kLong), images->rows);
  out["vision_tokens"] = std::move(tokens);
  auto logits = model.language.call<&Language::logits>(kTimeout, assembled.batch.text, *images);
  if (!logits) return troupe::fail(logits.error());
  out["logits"] = logits->front();
  out["position_ids"] = assembled.batch.text.positions.transpose(0, 1).contiguous();
  return {};
}

template <class Read>
Result<void> add_all(Model& model, const std::string& prefix, Read read, Tensors& out) {
  for (auto tensors : {read(model.vision), read(model.language)}) {
    if (!tensors) return troupe::fail(tensors.error());
    for (auto& [name, tensor] : *tensors) out[prefix + checkpoint_name(name)] = std::move(tensor);
  }
  return {};
}

Result<void> train(Model& model, const troupe::Source<Repeat>& source, const VerifyOptions& options, Tensors& out) {
  auto optimizer = model.graph.optimizer({.groups = {{"*", options.learning_rate, options.weight_decay}}});
  if (!optimizer) return troupe::fail(optimizer.error());
  for (int step = 0; step < options.steps; ++step) {
    const bool is_first = step == 0;
    const auto report = model.graph.step(*optimizer, {.source = source.id(), .micro_batches = options.micro_batches, .keep_gradients = is_first});
    if (!report) return troupe::fail(report.error());
    if (!is_first) continue;
    out["loss"] = at::full({}, report->loss, at::kDouble);
    out["grad_norm"] = at::full({}, report->grad_norm, at::kDouble);
    if (auto ok = add_all(model, "grad.", [](const auto& stage) { return stage.gradients(kTimeout); }, out); !ok) return ok;
  }
  return add_all(model, "param.", [](const auto& stage) { return stage.parameters(kTimeout); }, out);
}

}  // namespace

Result<Tensors> verify(const ModelConfig& config, const LoadModel& load, const RawBatch& raw, const VerifyOptions& options) {
  if (options.steps < 1) return troupe::fail(troupe::Errc::kInvalidArgument, troupe::text("steps must be >= 1, got ", options.steps));
  auto assembled = assemble(raw, config, options.video);
  if (!assembled) return troupe::fail(assembled.error());
  assembled->batch.patches.rows = assembled->batch.patches.rows.to(options.layout.dtype);
  auto model = parallelize(config, options.layout);
  if (!model) return troupe::fail(model.error());
  if (load) {
    if (auto ok = load(*model); !ok) return troupe::fail(ok.error());
  }
  auto source = model->graph.source<Repeat>({.name = "batch", .prefetch = 1}, assembled->batch);
  if (!source) return troupe::fail(source.error());
  feed(*model, *source);
  if (auto ok = model->graph.check(); !ok) return troupe::fail(ok.error());
  Tensors out;
  if (auto ok = add_looks(*model, *assembled, *source, out); !ok) return troupe::fail(ok.error());
  if (auto ok = train(*model, *source, options, out); !ok) return troupe::fail(ok.error());
  return out;
}

}  // namespace qwen_vl
