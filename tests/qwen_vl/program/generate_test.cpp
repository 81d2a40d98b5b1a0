// NUM-1: generation with kept keys and values says what running the whole sequence again says, in every layout.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../model/tiny.hpp"
#include "generate.hpp"

namespace qwen_vl {
namespace {

using ::testing::HasSubstr;

const ModelConfig kConfig = tiny_config();
constexpr std::int64_t kTokens = 6;

Model model_in(const troupe::Mesh& vision, const troupe::Mesh& language) {
  return troupe::or_throw(parallelize(kConfig, {.vision = vision, .language = language, .dtype = at::kDouble, .seed = 5}));
}

RawBatch prompt() {
  RawBatch out = tiny_batch(kConfig, {{.images = {{1, 6, 4}}, .videos = {{2, 4, 2}}, .text = 4}});
  out.pixel_values = out.pixel_values.to(at::kDouble);
  return out;
}

/// Without a cache: the whole sequence again for every token.
std::vector<std::int64_t> again_and_again() {
  std::vector<std::int64_t> out;
  RawBatch batch = prompt();
  for (std::int64_t i = 0; i < kTokens; ++i) {
    Model model = model_in({}, {});
    const auto one = troupe::or_throw(generate(model, kConfig, batch, {.max_tokens = 1}));
    out.push_back(one.tokens.front());
    const at::Tensor next = at::full({1, 1}, out.back(), at::kLong);
    batch.input_ids = at::cat({batch.input_ids, next}, 1);
    batch.labels = at::full_like(batch.input_ids, -100);
    batch.attention_mask = at::ones_like(batch.input_ids);
  }
  return out;
}

TEST(Generate, KeepsWhatItHasSeen) {
  const auto expected = again_and_again();
  for (const auto& [vision, language] : std::vector<std::pair<troupe::Mesh, troupe::Mesh>>{{{}, {}}, {{{"sp", 2}}, {{"tp", 2}}}, {{{"sp", 3}}, {{"tp", 3}}}, {{}, {{"tp", 4}}}}) {   // 3 heads: the fourth rank has none
    Model model = model_in(vision, language);
    EXPECT_EQ(troupe::or_throw(generate(model, kConfig, prompt(), {.max_tokens = kTokens})).tokens, expected) << language.to_string();
  }
}

TEST(Generate, EndsAtAStopId) {
  const auto all = again_and_again();
  Model model = model_in({}, {});
  const auto out = troupe::or_throw(generate(model, kConfig, prompt(), {.max_tokens = kTokens, .stop = {all[0]}}));
  EXPECT_TRUE(out.stopped);
  EXPECT_TRUE(out.tokens.empty());
}

TEST(Generate, RefusesTwoSamplesAndDataParallelRanks) {
  Model model = model_in({}, {});
  auto two = generate(model, kConfig, tiny_batch(kConfig, {{}, {}}), {});
  ASSERT_FALSE(two);
  EXPECT_EQ(two.error().code, troupe::Errc::kInvalidArgument);
  Model wide = model_in({}, {{"dp", 2}});
  auto dp = generate(wide, kConfig, prompt(), {});
  ASSERT_FALSE(dp);
  EXPECT_THAT(dp.error().message, HasSubstr("dp=2"));
}

TEST(Sampler, GreedyTakesTheLikeliest) {
  auto sampler = troupe::or_throw(Sampler::create({}));
  EXPECT_EQ(sampler.choose(at::tensor({0.1, 3.0, 2.9})), 1);
}

// Probabilities 0.5, 0.3, 0.2 at temperature 1: shares of 20,000 draws.
TEST(Sampler, DrawsByProbabilityAmongTheKept) {
  const at::Tensor scores = at::tensor({0.2, 0.5, 0.3}).log();
  const auto shares = [&](const SamplingOptions& options) {
    auto sampler = troupe::or_throw(Sampler::create(options));
    std::vector<double> out(3, 0);
    for (int i = 0; i < 20000; ++i) out[static_cast<std::size_t>(sampler.choose(scores))] += 1.0 / 20000;
    return out;
  };
  using ::testing::DoubleNear;
  using ::testing::ElementsAre;
  EXPECT_THAT(shares({.temperature = 1, .seed = 3}), ElementsAre(DoubleNear(0.2, 0.02), DoubleNear(0.5, 0.02), DoubleNear(0.3, 0.02)));
  EXPECT_THAT(shares({.temperature = 1, .top_p = 0.7, .seed = 3}), ElementsAre(0, DoubleNear(0.625, 0.02), DoubleNear(0.375, 0.02)));
  EXPECT_THAT(shares({.temperature = 1, .top_k = 1, .seed = 3}), ElementsAre(0, DoubleNear(1, 1e-6), 0));
  EXPECT_EQ(shares({.temperature = 0.7, .seed = 3}), shares({.temperature = 0.7, .seed = 3}));
}

TEST(Sampler, RefusesWhatIsNoProbability) {
  EXPECT_FALSE(Sampler::create({.temperature = -1}));
  EXPECT_FALSE(Sampler::create({.top_p = 0}));
  EXPECT_FALSE(Sampler::create({.top_k = -2}));
}

}  // namespace
}  // namespace qwen_vl
