// Your own modality: an encoder of yours over 3 ranks feeds a head over 2, on data of yours.
// The data: waves of 12 to 60 points; the head says which of four shapes each one has.
#include <cmath>
#include <cstdio>
#include <random>

#include <ATen/ATen.h>

#include <troupe/parallel/attention.hpp>
#include <troupe/parallel/linear.hpp>
#include <troupe/stage/environment.hpp>
#include <troupe/stage/graph.hpp>

using namespace std::chrono_literals;
using namespace troupe;

constexpr std::int64_t kWidth = 32, kHeads = 4, kShapes = 4, kBatch = 24;

struct Batch {
  Packed waves;          // rows: points; one item a wave
  at::Tensor shapes;     // [samples] i64
  static auto troupe_fields(auto& self) { return std::tie(self.waves, self.shapes); }
};

struct WavesConfig {
  std::int64_t seed = 0;
  std::int64_t batches = 0;
  static auto troupe_fields(auto& self) { return std::tie(self.seed, self.batches); }
};

// A source: a class with next(). It runs on an actor of its own.
class Waves {
 public:
  explicit Waves(const WavesConfig& config) : left_(config.batches), random_(static_cast<std::uint64_t>(config.seed)) {}

  std::optional<Batch> next() {
    if (left_-- == 0) return std::nullopt;
    Batch out;
    std::vector<float> points;
    std::vector<std::int64_t> shapes;
    for (std::int64_t sample = 0; sample < kBatch; ++sample) {
      const auto rows = static_cast<std::int64_t>(12 + random_() % 49);
      shapes.push_back(static_cast<std::int64_t>(random_() % kShapes));
      const double phase = static_cast<double>(random_() % 1000) / 159.0;
      for (std::int64_t i = 0; i < rows; ++i) {
        points.push_back(static_cast<float>(value(shapes.back(), 0.35 * static_cast<double>(i) + phase)));
        points.push_back(static_cast<float>(static_cast<double>(i) / 60.0));
      }
      out.waves.segments.push_back({.id = sample, .sample = sample, .rows = rows});
    }
    out.waves.rows = at::tensor(points).reshape({-1, 2});
    out.shapes = at::tensor(shapes, at::kLong);
    return out;
  }

 private:
  static double value(std::int64_t shape, double t) {
    const double wave = std::sin(t);
    if (shape == 0) return wave;
    if (shape == 1) return wave > 0 ? 1 : -1;
    if (shape == 2) return std::asin(wave) * 0.64;
    return std::fmod(t, 6.2832) / 3.1416 - 1;
  }
  std::int64_t left_;
  std::mt19937_64 random_;
};

struct Empty {
  static auto troupe_fields(auto&) { return std::tie(); }
};

// A module: a constructor, named parameters, forward. No backward, no collective in sight but attention's.
class WaveEncoder {
 public:
  WaveEncoder(Rank& rank, const Empty&)
      : sp_(rank.axis("sp")), embed_(rank.parameters("embed"), 2, kWidth, {.deviation = 0.3}), norm_(rank.parameters("norm"), kWidth),
        qkv_(rank.parameters("qkv"), kWidth, 3 * kWidth, {.bias = false, .deviation = 0.1}), out_(rank.parameters("out"), kWidth, kWidth, {.deviation = 0.1}) {}

  Packed forward(const Packed& waves) {
    const at::Tensor x = at::gelu(embed_.forward(waves.rows));
    const auto qkv = qkv_.forward(norm_.forward(x)).view({x.size(0), 3, kHeads, kWidth / kHeads}).unbind(1);
    const at::Tensor seen = ulysses_attention(qkv[0], qkv[1], qkv[2], waves.shards, sp_);
    return {x + out_.forward(seen.reshape({x.size(0), kWidth})), waves.segments};
  }

 private:
  transport::Group& sp_;
  Linear embed_;
  RmsNorm norm_;
  Linear qkv_, out_;
};

class Head {
 public:
  Head(Rank& rank, const Empty&) : score_(rank.parameters("score"), kWidth, kShapes, {.deviation = 0.1}) {}

  Loss forward(const at::Tensor& shapes, const Packed& waves) {
    at::Tensor means = at::zeros({shapes.size(0), kWidth}, waves.rows.options().requires_grad(false));
    std::vector<std::int64_t> sample;
    std::vector<float> weight;
    for (const Segment& item : waves.segments) {
      const auto row = std::find(waves.samples.begin(), waves.samples.end(), item.sample) - waves.samples.begin();
      sample.insert(sample.end(), static_cast<std::size_t>(item.rows), row);
      weight.insert(weight.end(), static_cast<std::size_t>(item.rows), 1.0F / static_cast<float>(item.rows));
    }
    means = means.index_add(0, at::tensor(sample, at::kLong), waves.rows * at::tensor(weight).unsqueeze(1));
    const at::Tensor losses = at::cross_entropy_loss(score_.forward(means), shapes, {}, at::Reduction::Sum);
    return {losses, shapes.size(0)};
  }

 private:
  Linear score_;
};

int main() try {
  const Runtime runtime = or_throw(Runtime::create({.environment = torch_environment()}));
  Graph graph(runtime, {.seed = 3});
  const auto data = or_throw(graph.source<Waves>({.name = "waves"}, WavesConfig{1, 80}));
  const auto encoder = or_throw(graph.stage<WaveEncoder>({.name = "encoder", .mesh = {{"sp", 3}}}, Empty{}));
  const auto head = or_throw(graph.stage<Head>({.name = "head", .mesh = {{"dp", 2}}}, Empty{}));
  graph.connect(data.out<&Batch::waves>(), encoder.in<0>(), {.to = shard_rows("sp")});
  graph.connect(data.out<&Batch::shapes>(), head.in<0>(), {.to = by_sample("dp")});
  graph.connect(encoder.out(), head.in<1>(), {.to = by_sample("dp", Grad::kReplicated)});
  or_throw(graph.check());
  const auto optimizer = or_throw(graph.optimizer({.groups = {{"*", 1e-2, 0.0}}, .clip = 1.0, .warmup_steps = 5}));
  double first = 0, last = 0;
  for (;;) {
    const auto report = graph.step(optimizer, {.micro_batches = 2});
    if (!report && report.error().code == Errc::kEndOfData) break;
    last = or_throw(report).loss;
    if (report->step == 1) first = last;
    if (report->step % 20 == 0) std::printf("step %2ld  loss %.3f\n", static_cast<long>(report->step), last);
  }
  std::printf("loss %.3f -> %.3f over a 3-rank encoder and a 2-rank head\n", first, last);
  return last < 0.5 * first ? 0 : 1;
} catch (const Exception& failed) {
  std::fprintf(stderr, "custom_module: %s\n", failed.what());
  return 1;
}
