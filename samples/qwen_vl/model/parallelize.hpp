#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <c10/core/ScalarType.h>

#include <troupe/stage/graph.hpp>

#include "batch.hpp"
#include "language.hpp"
#include "vision.hpp"

namespace qwen_vl {

/// Who computes what in which layout: everything parallel about this model is here and in the two modules' axes.
struct LayoutOptions {
  troupe::Mesh vision = {};                   ///< Axes dp, sp.
  troupe::Mesh language = {};                 ///< Axes dp, tp.
  c10::ScalarType dtype = c10::ScalarType::Float;
  std::uint64_t seed = 0;
  std::int64_t rank_bytes = 0;                ///< What a rank may hold, of a simulated device that a vision and a language rank share; 0: no budget, no count.
};

/// Nothing by itself: prompts are put on its edges.
class Prompts {
 public:
  explicit Prompts(const int& /*unused*/) {}
  std::optional<Batch> next() { return std::nullopt; }
  [[nodiscard]] std::string state() const { return {}; }
  void restore(const std::string& /*unused*/) {}
};

/// The two stages and the edge between them; sources are connected with feed().
struct Model {
  troupe::Graph graph;
  troupe::Stage<Vision> vision;
  troupe::Stage<Language> language;
  troupe::Source<Prompts> prompts;   ///< For generation: prompts.put(batch).
};

/// Starts the ranks. Fails with: kInvalidArgument (an axis the modules do not know), kInfeasible.
[[nodiscard]] troupe::Result<Model> parallelize(const ModelConfig& config, const LayoutOptions& options);

/// Pictures balanced over the tower's dp by their patches and cut over sp between windows; text by sample over dp.
template <class S>
void feed(Model& model, const troupe::Source<S>& source) {
  model.graph.connect(source.template out<&Batch::patches>(), model.vision.in<0>(), {.to = troupe::balance("dp", "sp")});
  model.graph.connect(source.template out<&Batch::coordinates>(), model.vision.in<1>(), {.to = troupe::balance("dp", "sp")});
  model.graph.connect(source.template out<&Batch::text>(), model.language.in<0>(), {.to = troupe::by_sample("dp")});
}

/// The name of a parameter in the checkpoint's files from its name in the graph: "vision.blocks.0..." ->
/// "visual.blocks.0...", "language.model.layers.0..." -> "model.layers.0...".
[[nodiscard]] std::string checkpoint_name(const std::string& full);

}  // namespace qwen_vl
