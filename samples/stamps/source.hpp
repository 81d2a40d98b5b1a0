#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
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

/// What both sources are made from.
struct SourceConfig {
  std::vector<Example> examples;
  std::int64_t batch = 32;
  std::int64_t seed = 0;
  static auto troupe_fields(auto& self) { return std::tie(self.examples, self.batch, self.seed); }
};

/// Pictures by path, each decoded once, on first use. Throws troupe::Exception with what load_picture() says.
class PictureCache {
 public:
  const Picture& get(const std::string& path);
  [[nodiscard]] std::int64_t decoded() const noexcept { return std::ssize(pictures_); }

 private:
  std::map<std::string, Picture> pictures_;
};

/// Which examples make the `index`-th training batch: a new order each pass, which depends on the seed only;
/// what does not fill a batch rests until the next pass. Pure, so the driver knows what a source will show.
[[nodiscard]] std::vector<std::size_t> training_batch(std::size_t examples, std::int64_t batch, std::int64_t seed, std::int64_t index);

/// Endless training batches. Each picture is moved a little, another way each time: 708 pictures are soon known
/// by heart otherwise.
class TrainingSource {
 public:
  explicit TrainingSource(const SourceConfig& config) : config_(config) {}
  std::optional<Batch> next();
  [[nodiscard]] std::string state() const { return std::to_string(made_); }
  void restore(const std::string& state) { made_ = std::stoll(state); }

 private:
  SourceConfig config_;
  PictureCache pictures_;
  std::int64_t made_ = 0;
};

/// How the held-out captions are shown.
enum class Show : int {
  kTrue,      ///< With their own pictures.
  kShuffled,  ///< With another caption's: does the model look?
  kNone,      ///< With none: what do the captions alone tell?
};
inline constexpr int kShows = 3;

/// Passes over all examples in order, each ended by the end of data: kTrue, kShuffled, kNone, then again.
/// One source for all, so that a picture is decoded once however often it is shown.
class HeldOutSource {
 public:
  explicit HeldOutSource(const SourceConfig& config) : config_(config) {}
  std::optional<Batch> next();
  /// A run is saved between steps, and looks at the held-out examples when it has trained: always at their beginning.
  [[nodiscard]] std::string state() const { return "start"; }
  void restore(const std::string& /*unused*/) { show_ = Show::kTrue, at_ = 0; }

 private:
  SourceConfig config_;
  PictureCache pictures_;
  Show show_ = Show::kTrue;
  std::size_t at_ = 0;
};

/// A picture as it goes into a batch.
struct Shown {
  const Picture* picture = nullptr;
  Shift shift = {};
};

/// Patches and captions of the given examples, in order. `pictures` may be empty.
[[nodiscard]] Batch make_batch(const std::vector<const Example*>& captions, const std::vector<Shown>& pictures);

}  // namespace stamps
