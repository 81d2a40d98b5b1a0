#pragma once

#include <algorithm>
#include <numeric>

#include <ATen/ATen.h>

#include <troupe/parallel/attention.hpp>
#include <troupe/parallel/collectives.hpp>
#include <troupe/parallel/linear.hpp>
#include <troupe/parallel/vocab.hpp>
#include <troupe/stage/graph.hpp>

// Small modules in the shapes that matter: an encoder over ragged items with Ulysses and a 2:1 merger, and a
// decoder with tensor parallelism and a sharded vocabulary.
namespace troupe::test {

/// Numbers without a pattern and without LibTorch's generator.
inline at::Tensor scattered(std::vector<std::int64_t> shape, double phase = 0) {
  std::int64_t count = 1;
  for (const auto size : shape) count *= size;
  return at::arange(count, at::kDouble).mul(12.9898).add(phase).sin().mul(43758.5453).frac().reshape(shape);
}

struct EncoderConfig {
  std::int64_t in = 5;
  std::int64_t heads = 3;
  std::int64_t head_dim = 4;
  std::int64_t merge = 2;
  std::int64_t out = 6;
  static auto troupe_fields(auto& self) { return std::tie(self.in, self.heads, self.head_dim, self.merge, self.out); }
};

class Encoder {
 public:
  Encoder(Rank& rank, const EncoderConfig& config)
      : config_(config),
        sp_(rank.axis("sp")),
        embed_(rank.parameters("embed"), config.in, width(), {.deviation = 0.5}),
        norm_(rank.parameters("norm"), width()),
        // no bias: softmax cancels a key's bias, so its gradient is rounding noise, which Adam would blow up
        qkv_(rank.parameters("qkv"), width(), 3 * width(), {.bias = false, .deviation = 0.5}),
        merge_(rank.parameters("merge"), width() * config.merge, config.out, {.deviation = 0.5}) {}

  [[nodiscard]] std::int64_t width() const { return config_.heads * config_.head_dim; }

  Packed forward(const Packed& patches) {
    const at::Tensor x = embed_.forward(patches.rows);
    const auto qkv = qkv_.forward(norm_.forward(x)).view({-1, 3, config_.heads, config_.head_dim}).unbind(1);
    const at::Tensor attended = ulysses_attention(qkv[0], qkv[1], qkv[2], patches.shards, sp_);
    const at::Tensor y = x + attended.reshape({-1, width()});
    return {merge_.forward(y.reshape({-1, width() * config_.merge})), or_throw(merged(patches.segments, config_.merge))};
  }

 private:
  EncoderConfig config_;
  transport::Group& sp_;
  Linear embed_;
  RmsNorm norm_;
  Linear qkv_;
  Linear merge_;
};

struct Text {
  at::Tensor ids;      ///< [B, S] i64
  at::Tensor labels;   ///< [B, S] i64, -100: not counted
  std::vector<std::int64_t> counted;   ///< Labels that count, by sample: on the host (NUM-6).
  static auto troupe_fields(auto& self) { return std::tie(self.ids, self.labels, self.counted); }
};

struct DecoderConfig {
  std::int64_t vocabulary = 13;
  std::int64_t heads = 3;
  std::int64_t head_dim = 4;
  std::int64_t inner = 10;
  std::int64_t image = 6;
  static auto troupe_fields(auto& self) { return std::tie(self.vocabulary, self.heads, self.head_dim, self.inner, self.image); }
};

/// One tensor-parallel block over text, with the mean of each sample's image rows added to its tokens.
class Decoder {
 public:
  Decoder(Rank& rank, const DecoderConfig& config)
      : config_(config),
        tp_(rank.axis("tp")),
        tokens_(rank.parameters("tokens"), config.vocabulary, width(), tp_, "tp", 0.5),
        image_(rank.parameters("image"), config.image, width(), {.deviation = 0.5}),
        norm_(rank.parameters("norm"), width()),
        qkv_(rank.parameters("qkv"), width(), 3 * width(), tp_,
             {.bias = false, .unit = config.head_dim, .parts = {width(), width(), width()}, .deviation = 0.5}),
        out_(rank.parameters("out"), width(), width(), tp_, {.unit = config.head_dim, .deviation = 0.5}),
        up_(rank.parameters("up"), width(), config.inner, tp_, {.deviation = 0.5}),
        down_(rank.parameters("down"), config.inner, width(), tp_, {.deviation = 0.5}) {}

  [[nodiscard]] std::int64_t width() const { return config_.heads * config_.head_dim; }

  Loss forward(const Text& text, const Packed& images) {
    const std::int64_t batch = text.ids.size(0);
    const std::int64_t length = text.ids.size(1);
    at::Tensor x = tokens_.forward(text.ids) + image_.forward(means(images, batch)).unsqueeze(1);
    const at::Tensor h = norm_.forward(x);
    const std::int64_t heads = share_of(config_.heads, tp_.size(), tp_.rank()).size;
    const auto qkv = qkv_.forward(h).view({batch * length, 3, heads, config_.head_dim}).unbind(1);
    const std::vector<std::int64_t> lengths(static_cast<std::size_t>(batch), length);
    const at::Tensor attended = packed_attention(qkv[0], qkv[1], qkv[2], lengths, Mask::kCausal);
    x = x + out_.forward(attended.reshape({batch, length, heads * config_.head_dim}));
    x = x + down_.forward(at::gelu(up_.forward(norm_.forward(x))));
    const at::Tensor logits = tokens_.logits(norm_.forward(x)).reshape({batch * length, tokens_.share().size});
    const at::Tensor losses = vocab_parallel_cross_entropy(logits, text.labels.reshape({-1}), tokens_.share(), tp_);
    return {losses.sum(), std::accumulate(text.counted.begin(), text.counted.end(), std::int64_t{0})};
  }

 private:
  /// [batch, image]: the mean of each sample's rows; zeros without. By host integers only.
  [[nodiscard]] at::Tensor means(const Packed& images, std::int64_t batch) const {
    at::Tensor out = at::zeros({batch, config_.image}, images.rows.options().requires_grad(false));
    std::vector<std::int64_t> sample;
    std::vector<double> weight;
    for (const Segment& item : images.segments) {
      const auto row = std::find(images.samples.begin(), images.samples.end(), item.sample) - images.samples.begin();
      sample.insert(sample.end(), static_cast<std::size_t>(item.rows), row);
      weight.insert(weight.end(), static_cast<std::size_t>(item.rows), 1.0 / static_cast<double>(item.rows));
    }
    return out.index_add(0, at::tensor(sample, at::kLong), images.rows * at::tensor(weight, at::kDouble).to(images.rows.scalar_type()).unsqueeze(1));
  }

  DecoderConfig config_;
  transport::Group& tp_;
  VocabParallelEmbedding tokens_;
  Linear image_;
  RmsNorm norm_;
  ColumnParallelLinear qkv_;
  RowParallelLinear out_;
  ColumnParallelLinear up_;
  RowParallelLinear down_;
};

/// Items of the given rows, one or more per sample: item i belongs to sample i % samples.
inline Packed items(const std::vector<std::int64_t>& rows, std::int64_t width, std::int64_t cut_multiple, std::int64_t samples) {
  Packed out;
  std::int64_t id = 0;
  for (const auto count : rows) out.segments.push_back({.id = id, .sample = id % samples, .rows = count, .cut_multiple = cut_multiple, .cost = 0}), ++id;
  out.rows = scattered({rows_of(out.segments), width});
  return out;
}

/// Ids and labels with uneven masks: sample s leaves out its first s labels.
inline Text text_of(std::int64_t samples, std::int64_t length, std::int64_t vocabulary) {
  Text out;
  out.ids = at::arange(samples * length, at::kLong).mul(7).remainder(vocabulary).reshape({samples, length});
  out.labels = out.ids.add(3).remainder(vocabulary);
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    out.labels[sample].narrow(0, 0, std::min(sample, length)).fill_(-100);
    out.counted.push_back(length - std::min(sample, length));
  }
  return out;
}

}  // namespace troupe::test
