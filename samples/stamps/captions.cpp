#include "captions.hpp"

#include <algorithm>

#include <ATen/ATen.h>

namespace stamps {

using namespace std::chrono_literals;

troupe::Result<std::vector<std::string>> caption(troupe::Graph& graph, const troupe::GlobalBatch<Batch>& batch,
                                                 const troupe::Stage<Vision>& vision, const troupe::Stage<Language>& language,
                                                 const std::vector<std::string>& words) {
  troupe::Tape tape = graph.evaluation_tape();
  auto pictures = graph.fetch(tape(vision, batch.get<&Batch::pixels>()), 60s);
  if (!pictures) return troupe::fail(pictures.error());
  std::vector<std::vector<std::int64_t>> tokens(static_cast<std::size_t>(batch.samples()), {kBegin});
  at::Tensor ids = at::full({batch.samples(), 1}, static_cast<std::int64_t>(kBegin), at::kLong);
  for (std::int64_t step = 1; step < kMaxTokens; ++step) {
    auto next = language.call<&Language::next_tokens>(60s, ids, *pictures);
    if (!next) return troupe::fail(next.error());
    const auto& best = next->front();
    for (std::size_t sample = 0; sample < best.size(); ++sample) tokens[sample].push_back(best[sample]);
    ids = at::cat({ids, at::tensor(best, at::kLong).unsqueeze(1)}, 1);
    if (std::ranges::all_of(tokens, [](const auto& line) { return std::ranges::find(line, kEnd) != line.end(); })) break;
  }
  std::vector<std::string> out;
  for (const auto& line : tokens) out.push_back(caption_of(words, line));
  return out;
}

}  // namespace stamps
