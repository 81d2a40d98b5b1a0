#pragma once

#include <optional>
#include <string>

#include "support/two_stage.hpp"

namespace troupe::test {

struct StreamConfig {
  std::int64_t samples = 5;
  std::int64_t batches = 1000;      ///< Then the data end.
  std::int64_t text_only = 0;       ///< So many batches at the start have no item.
  static auto troupe_fields(auto& self) { return std::tie(self.samples, self.batches, self.text_only); }
};

/// Batches that all differ, by their number, which is the source's state.
class Stream {
 public:
  explicit Stream(const StreamConfig& config) : config_(config) {}
  std::optional<TwoStageBatch> next();
  [[nodiscard]] std::string state() const { return std::to_string(made_); }
  /// Throws Exception (kBadData) for what is no number.
  void restore(const std::string& state);

 private:
  StreamConfig config_;
  std::int64_t made_ = 0;
};

/// A training program as users write it: Stream -> Encoder -> Decoder.
struct ProgramOptions {
  Mesh encoder = {};
  Mesh decoder = {};
  EncoderConfig encoder_config = {};
  DecoderConfig decoder_config = {};
  StreamConfig data = {};
  int prefetch = 3;
  std::uint64_t seed = 11;
  c10::ScalarType dtype = c10::ScalarType::Double;
  bool rehearse = true;
  OptimizerOptions optimizer = {.groups = {{"encoder.*", 1e-2, 0.01}, {"decoder.*", 5e-3, 0.0}}, .clip = 1.0, .warmup_steps = 2, .total_steps = 20};
};

class Program {
 public:
  /// Throws what making the graph fails with.
  explicit Program(const ProgramOptions& options = {});

  /// One step of `micro_batches`; throws its error.
  StepReport step(int micro_batches = 1);
  /// Losses of `steps` steps.
  std::vector<double> train(int steps, int micro_batches = 1);

  Runtime runtime;
  Graph graph;
  Source<Stream> data;
  Stage<Encoder> encoder;
  Stage<Decoder> decoder;
  Optimizer optimizer;
};

/// The names whose tensors are not the same bits, or that one lacks: "" when there is none.
[[nodiscard]] std::string differing(const std::map<std::string, at::Tensor>& a, const std::map<std::string, at::Tensor>& b);

}  // namespace troupe::test
