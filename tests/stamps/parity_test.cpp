// NUM-1, NUM-7: the sample's own model, in fp64, against its serial twin: losses, every gradient, parameters after
// three steps. Six heads over four ranks are uneven (2, 2, 1, 1).
#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include <troupe/testing/parity.hpp>

#include "language.hpp"
#include "vision.hpp"

namespace stamps {
namespace {

using troupe::Mesh;
using troupe::Packed;
using troupe::testing::compare;
using troupe::testing::expect_parity;
using troupe::testing::ParityOptions;
using troupe::testing::ParityRun;

constexpr std::int64_t kWidth = 24;
constexpr std::int64_t kVocabulary = 29;
const VisionConfig kVision{.width = kWidth, .heads = 6, .layers = 2, .out = kWidth};
const LanguageConfig kLanguage{.vocabulary = kVocabulary, .width = kWidth, .heads = 6, .layers = 2};

/// Five captions of 1 to 5 words; sample 3 has no picture.
Batch batch_of_five() {
  std::vector<Example> examples;
  for (std::int64_t i = 0; i < 5; ++i) {
    Example example{"", "", {kBegin}};
    for (std::int64_t word = 0; word <= i; ++word) example.tokens.push_back(kSpecials + (7 * i + 3 * word) % (kVocabulary - kSpecials));
    example.tokens.push_back(kEnd);
    examples.push_back(example);
  }
  std::vector<const Example*> captions;
  for (const auto& example : examples) captions.push_back(&example);
  Batch out = make_batch(captions, {});
  for (const std::int64_t sample : {0, 1, 2, 4}) out.pixels.segments.push_back({.id = sample, .sample = sample, .rows = kPatches, .cut_multiple = kMerge});
  out.pixels.rows = at::arange(4 * kPatches * kPatchSize, at::kDouble).mul(12.9898).sin().mul(43758.5453).frac().view({4 * kPatches, kPatchSize});
  return out;
}

Packed picture_tokens() {
  Packed out;
  for (const std::int64_t sample : {0, 1, 2, 4}) out.segments.push_back({.id = sample, .sample = sample, .rows = kPatches / kMerge});
  out.rows = at::arange(4 * kPatches / kMerge * kWidth, at::kDouble).mul(78.233).sin().mul(43758.5453).frac().view({-1, kWidth});
  return out;
}

TEST(StampsParity, VisionOverSpAndDp) {
  ParityOptions options;
  options.meshes = {{{"sp", 2}}, {{"sp", 3}}, {{"sp", 4}}, {{"dp", 2}}, {{"dp", 3}}, {{"dp", 4}}, {{"dp", 2}, {"sp", 2}}};
  options.inputs = {troupe::balance("dp", "sp")};
  const auto report = expect_parity<Vision>(kVision, std::tuple{batch_of_five().pixels}, options);
  EXPECT_TRUE(report) << report.message;
}

TEST(StampsParity, LanguageOverTpAndDp) {
  ParityOptions options;
  options.meshes = {{{"tp", 2}}, {{"tp", 3}}, {{"tp", 4}}, {{"dp", 2}}, {{"dp", 3}}, {{"dp", 4}}, {{"dp", 2}, {"tp", 2}}};
  options.inputs = {troupe::by_sample("dp"), troupe::by_sample("dp")};
  const auto report = expect_parity<Language>(kLanguage, std::tuple{batch_of_five().text, picture_tokens()}, options);
  EXPECT_TRUE(report) << report.message;
}

/// The same batch again and again.
class FiveSource {
 public:
  explicit FiveSource(const int& /*unused*/) {}
  std::optional<Batch> next() { return batch_of_five(); }
};

void add(std::map<std::string, at::Tensor>& all, troupe::Result<std::map<std::string, at::Tensor>> some) { all.merge(troupe::or_throw(std::move(some))); }

/// Three steps of the whole model, as job.cpp connects it.
ParityRun train_both(const Mesh& vision_mesh, const Mesh& language_mesh, int micro_batches = 1) {
  using namespace std::chrono_literals;
  auto runtime = troupe::or_throw(troupe::Runtime::create({.environment = troupe::torch_environment()}));
  troupe::Graph graph(runtime, {.seed = 5});
  auto data = troupe::or_throw(graph.source<FiveSource>({.name = "five"}, 0));
  auto vision = troupe::or_throw(graph.stage<Vision>({.name = "vision", .mesh = vision_mesh, .dtype = at::kDouble}, kVision));
  auto language = troupe::or_throw(graph.stage<Language>({.name = "language", .mesh = language_mesh, .dtype = at::kDouble}, kLanguage));
  graph.connect(data.out<&Batch::pixels>(), vision.in<0>(), {.to = troupe::balance("dp", "sp")});
  graph.connect(data.out<&Batch::text>(), language.in<0>(), {.to = troupe::by_sample("dp")});
  graph.connect(vision.out(), language.in<1>(), {.to = troupe::by_sample("dp", troupe::Grad::kReplicated)});
  const auto optimizer = troupe::or_throw(graph.optimizer({.groups = {{"*", 1e-2, 0.05}}, .clip = 1.0}));
  ParityRun run;
  for (int step = 0; step < 3; ++step) {
    const auto report = troupe::or_throw(graph.step(optimizer, {.micro_batches = micro_batches, .keep_gradients = true}));
    run.losses.push_back(report.loss);
    run.norms.push_back(report.grad_norm);
    if (step != 0 && step != 2) continue;
    auto& gradients = step == 0 ? run.first_gradients : run.last_gradients;
    add(gradients, vision.gradients(60s));
    add(gradients, language.gradients(60s));
  }
  add(run.parameters, vision.parameters(60s));
  add(run.parameters, language.parameters(60s));
  return run;
}

// the layouts of the main job and around it; EDG-1, EDG-2 between them
TEST(StampsParity, WholeModelInEveryPairOfLayouts) {
  const ParityRun serial = train_both({}, {});
  const std::vector<Mesh> visions = {{{"dp", 1}, {"sp", 2}}, {{"sp", 4}}, {{"dp", 3}}, {{"dp", 2}, {"sp", 2}}};
  const std::vector<Mesh> languages = {{{"tp", 2}}, {{"tp", 4}}, {{"dp", 3}}, {{"dp", 2}, {"tp", 2}}};
  for (const Mesh& vision : visions) {
    for (const Mesh& language : languages) {
      const auto report = compare(serial, train_both(vision, language), "vision " + vision.to_string() + ", language " + language.to_string(), 1e-10);
      EXPECT_TRUE(report) << report.message;
    }
  }
}

// case 12: micro-batches of 2, 2 and 1 samples, one of them with a sample without a picture
TEST(StampsParity, MicroBatchesChangeNothing) {
  const auto report = compare(train_both({}, {}), train_both({{"sp", 2}}, {{"tp", 2}}, 3), "3 micro-batches", 1e-10);
  EXPECT_TRUE(report) << report.message;
}

TEST(StampsParity, TwoRunsAreTheSameBits) {
  EXPECT_TRUE(troupe::testing::identical(train_both({{"dp", 1}, {"sp", 2}}, {{"tp", 2}}), train_both({{"dp", 1}, {"sp", 2}}, {{"tp", 2}})));
}

}  // namespace
}  // namespace stamps
