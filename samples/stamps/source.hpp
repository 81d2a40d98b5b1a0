#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/stage/graph.hpp>
#include <troupe/torch/packed.hpp>

#include "data.hpp"
#include "picture.hpp"

namespace stamps {

/// Captions of one batch. Legend: B samples, S tokens.
struct Text {
  at::Tensor ids;      ///< [B, S] i64: kBegin, words, kPad.
  at::Tensor labels;   ///< [B, S] i64: the next token; -100 where nothing counts.
  std::vector<std::int64_t> counted;  ///< Labels that count, by sample: on the host, so that no one reads a device tensor for it.
  static auto troupe_fields(auto& self) { return std::tie(self.ids, self.labels, self.counted); }
};

struct Batch {
  troupe::Packed pixels;   ///< Rows are patches; one item a picture.
  Text text;
  static auto troupe_fields(auto& self) { return std::tie(self.pixels, self.text); }
};

enum class Pictures : std::int64_t {
  kTrue,      ///< Each caption's own.
  kShuffled,  ///< Another caption's: does the model look?
  kNone,      ///< None: what do the captions alone tell?
};

struct SourceConfig {
  std::vector<Example> examples;
  std::int64_t batch = 32;
  std::int64_t seed = 0;
  Pictures pictures = Pictures::kTrue;
  bool endless = true;         ///< Training: a new order each pass. Else: one pass in order, then the end.
  static auto troupe_fields(auto& self) { return std::tie(self.examples, self.batch, self.seed, self.pictures, self.endless); }
};

/// Decodes pictures on its own actor, each once.
class StampSource {
 public:
  explicit StampSource(const SourceConfig& config);
  std::optional<Batch> next();

 private:
  const Picture& picture(const std::string& path);
  void start_pass();

  SourceConfig config_;
  std::vector<std::size_t> order_;
  std::size_t at_ = 0;
  std::int64_t pass_ = 0;
  std::unordered_map<std::string, Picture> decoded_;
};

/// Patches and captions of the given examples, in order.
[[nodiscard]] Batch make_batch(const std::vector<const Example*>& captions, const std::vector<const Picture*>& pictures);

}  // namespace stamps
