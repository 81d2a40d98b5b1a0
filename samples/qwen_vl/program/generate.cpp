#include "generate.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <utility>

#include <ATen/ATen.h>

#include <troupe/base/text.hpp>

namespace qwen_vl {
namespace {

using namespace std::chrono_literals;
using troupe::Errc;
using troupe::Result;
using troupe::text;

constexpr troupe::Duration kTimeout = 10min;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// The tower's output for the prompt, in whole.
Result<troupe::Packed> look(Model& model, const Batch& batch) {
  const auto whole = model.prompts.put(batch);
  if (!whole) return troupe::fail(whole.error());
  troupe::Tape tape = model.graph.evaluation_tape();
  return model.graph.fetch(tape(model.vision, whole->get<&Batch::patches>(), whole->get<&Batch::coordinates>()), kTimeout);
}

/// The scores that all ranks agree on, from rank 0. [V]
Result<at::Tensor> scores_of(Result<std::vector<at::Tensor>> by_rank) {
  if (!by_rank) return troupe::fail(std::move(by_rank.error()));
  return by_rank->front()[0];
}

Result<void> check_prompt(const Model& model, const RawBatch& prompt) {
  if (!prompt.input_ids.defined() || prompt.input_ids.dim() != 2 || prompt.input_ids.size(0) != 1) {
    return troupe::fail(Errc::kInvalidArgument, "generation continues one sample at a time");
  }
  if (const int dp = model.language.pool().mesh().size("dp"); dp > 1) {
    return troupe::fail(Errc::kInvalidArgument, text("generation needs language dp=1, got dp=", dp, "; use tp"));
  }
  return {};
}

}  // namespace

Result<Sampler> Sampler::create(const SamplingOptions& options) {
  const auto wrong = [](auto... parts) { return troupe::fail(Errc::kInvalidArgument, text("sampling: ", parts...)); };
  if (!(options.temperature >= 0)) return wrong("temperature must be >= 0, got ", options.temperature);
  if (options.top_k < 0) return wrong("top_k must be >= 0, got ", options.top_k);
  if (!(options.top_p > 0 && options.top_p <= 1)) return wrong("top_p must be in (0, 1], got ", options.top_p);
  return Sampler(options);
}

/// splitmix64, public domain.
double Sampler::uniform() {
  std::uint64_t x = state_ += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1.0p-53;
}

std::int64_t Sampler::choose(const at::Tensor& scores) {
  if (options_.temperature == 0) return scores.argmax().item<std::int64_t>();
  const auto [sorted, order] = (scores.to(at::kDouble) / options_.temperature).softmax(0).sort(/*stable=*/true, /*dim=*/0, /*descending=*/true);
  const at::Tensor probabilities = sorted.contiguous();
  const auto* p = probabilities.const_data_ptr<double>();
  std::int64_t kept = options_.top_k > 0 ? std::min(options_.top_k, scores.size(0)) : scores.size(0);
  double mass = 0;
  for (std::int64_t i = 0; i < kept; ++i) {
    mass += p[i];
    if (mass >= options_.top_p) kept = i + 1;
  }
  const double drawn = uniform() * mass;
  double sum = 0;
  std::int64_t at = 0;
  while (at + 1 < kept && (sum += p[at]) <= drawn) ++at;
  return order[at].item<std::int64_t>();
}

Result<Generated> generate(Model& model, const ModelConfig& config, RawBatch prompt, const GenerateOptions& options) {
  if (auto ok = check_prompt(model, prompt); !ok) return troupe::fail(ok.error());
  auto sampler = Sampler::create(options.sampling);
  if (!sampler) return troupe::fail(sampler.error());
  if (!prompt.labels.defined()) prompt.labels = at::full_like(prompt.input_ids, -100);
  const auto assembled = assemble(prompt, config);
  if (!assembled) return troupe::fail(assembled.error());
  const auto start = Clock::now();
  const auto images = look(model, assembled->batch);
  if (!images) return troupe::fail(images.error());
  const Text& text_input = assembled->batch.text;
  auto scores = scores_of(model.language.call<&Language::begin>(kTimeout, text_input, *images));
  Generated out;
  out.prompt_seconds = since(start);
  const auto first = Clock::now();
  std::int64_t position = text_input.positions.max().item<std::int64_t>() + 1;
  for (std::int64_t count = 0; count < options.max_tokens; ++count, ++position) {
    if (!scores) return troupe::fail(scores.error());
    const std::int64_t token = sampler->choose(*scores);
    out.stopped = std::ranges::find(options.stop, token) != options.stop.end();
    if (out.stopped) break;
    out.tokens.push_back(token);
    if (options.on_token) options.on_token(token);
    if (count + 1 < options.max_tokens) {
      scores = scores_of(model.language.call<&Language::next>(kTimeout, at::full({1, 1}, token, at::kLong), at::full({1, 3, 1}, position, at::kLong)));
    }
  }
  out.token_seconds = since(first);
  return out;
}

}  // namespace qwen_vl
