#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "parallelize.hpp"

namespace qwen_vl {

/// How the next token is chosen. Source of top-p: Holtzman et al. 2020, arXiv 1904.09751.
struct SamplingOptions {
  double temperature = 0;      ///< 0: the likeliest (greedy).
  std::int64_t top_k = 0;      ///< Only the k likeliest; 0: all.
  double top_p = 1;            ///< Only the likeliest that together have this probability.
  std::uint64_t seed = 0;
};

/// Chooses tokens; the same seed gives the same choices for the same scores. A value.
class Sampler {
 public:
  /// Fails with: kInvalidArgument for a temperature < 0, top_k < 0, top_p outside (0, 1].
  static troupe::Result<Sampler> create(const SamplingOptions& options);
  /// scores [V]: logits. Of equal ones the lower id counts first.
  std::int64_t choose(const at::Tensor& scores);

 private:
  explicit Sampler(const SamplingOptions& options) : options_(options), state_(options.seed) {}
  double uniform();
  SamplingOptions options_;
  std::uint64_t state_;
};

struct GenerateOptions {
  std::int64_t max_tokens = 128;
  SamplingOptions sampling = {};
  std::vector<std::int64_t> stop = {};                         ///< Ids that end the answer; not part of it.
  std::function<void(std::int64_t)> on_token = {};             ///< Called as each is chosen, on the caller's thread.
};

struct Generated {
  std::vector<std::int64_t> tokens;
  double prompt_seconds = 0;      ///< Encoder and prompt.
  double token_seconds = 0;       ///< All tokens after the first.
  bool stopped = false;           ///< By a stop id, not by max_tokens.
};

/// Continues one prompt (a batch of one sample, labels unused): the tower runs in its layout, the decoder keeps keys and
/// values on its ranks, one token a call. Fails with: kInvalidArgument for more than one sample or dp > 1 in the
/// language mesh, what the batch or a rank fails with.
[[nodiscard]] troupe::Result<Generated> generate(Model& model, const ModelConfig& config, RawBatch prompt, const GenerateOptions& options);

}  // namespace qwen_vl
