// NUM-1, NUM-7: both modules in fp64 against their serial twins: losses, every gradient, parameters after three steps.
// case 5, case 7, case 8: positions and windows are made before anything is cut; heads, kv heads, rows and the vocabulary divide nothing.
#include <gtest/gtest.h>

#include <troupe/testing/parity.hpp>

#include "language.hpp"
#include "tiny.hpp"
#include "vision.hpp"

namespace qwen_vl {
namespace {

using troupe::Mesh;
using troupe::testing::expect_parity;
using troupe::testing::ParityOptions;

const ModelConfig kConfig = tiny_config();

Batch batch_of(const std::vector<TinySample>& samples) { return troupe::or_throw(assemble(tiny_batch(kConfig, samples), kConfig)).batch; }

/// Picture tokens as the tower would give them.
troupe::Packed tokens_for(const Batch& batch) {
  troupe::Packed out;
  out.segments = troupe::or_throw(troupe::merged(batch.patches.segments, kConfig.vision.merge_unit()));
  out.rows = noise({troupe::rows_of(out.segments), kConfig.language.hidden}, 3);
  return out;
}

ParityOptions vision_options() {
  ParityOptions out;
  out.meshes = {{{"sp", 2}}, {{"sp", 3}}, {{"sp", 4}}, {{"dp", 2}}, {{"dp", 3}, {"sp", 2}}, {{"dp", 2}, {"sp", 2}}};
  out.inputs = {troupe::balance("dp", "sp"), troupe::balance("dp", "sp")};
  return out;
}

TEST(QwenParity, VisionOverSpAndDp) {
  const Batch batch = batch_of(mixed_samples());
  const auto report = expect_parity<Vision>(kConfig.vision, std::tuple{batch.patches, batch.coordinates}, vision_options());
  EXPECT_TRUE(report) << report.message;
}

TEST(QwenParity, VisionWithFewerWindowsThanRanks) {
  const Batch batch = batch_of({{.images = {{1, 4, 4}}}, {}});
  const auto report = expect_parity<Vision>(kConfig.vision, std::tuple{batch.patches, batch.coordinates}, vision_options());
  EXPECT_TRUE(report) << report.message;
}

TEST(QwenParity, LanguageOverTpAndDp) {
  const Batch batch = batch_of(mixed_samples());
  ParityOptions options;
  options.meshes = {{{"tp", 2}}, {{"tp", 3}}, {{"tp", 4}}, {{"dp", 2}}, {{"dp", 3}}, {{"dp", 2}, {"tp", 2}}};   // 3 heads: a fourth rank has none
  options.inputs = {troupe::by_sample("dp"), troupe::by_sample("dp")};
  const auto report = expect_parity<Language>(kConfig.language, std::tuple{batch.text, tokens_for(batch)}, options);
  EXPECT_TRUE(report) << report.message;
}

// case 8: tp past the kv heads, heads that no share of is even: 6 heads over 2 kv heads and 4 ranks are 2, 2, 1, 1.
TEST(QwenParity, LanguageWithGroupedHeadsOverMoreRanksThanKvHeads) {
  LanguageConfig config = kConfig.language;
  config.heads = 6;
  config.kv_heads = 2;
  config.head_dim = 4;
  config.sections = {1, 1, 0};
  config.tied = true;
  const Batch batch = batch_of(mixed_samples());
  ParityOptions options;
  options.meshes = {{{"tp", 2}}, {{"tp", 3}}, {{"tp", 4}}, {{"tp", 5}}};
  options.inputs = {troupe::by_sample("dp"), troupe::by_sample("dp")};
  const auto report = expect_parity<Language>(config, std::tuple{batch.text, tokens_for(batch)}, options);
  EXPECT_TRUE(report) << report.message;
}

TEST(QwenParity, LanguageOverMicroBatches) {
  const Batch batch = batch_of(mixed_samples());
  ParityOptions options;
  options.meshes = {Mesh{{"tp", 2}}};
  options.inputs = {troupe::by_sample("dp"), troupe::by_sample("dp")};
  options.micro_batches = 3;
  const auto report = expect_parity<Language>(kConfig.language, std::tuple{batch.text, tokens_for(batch)}, options);
  EXPECT_TRUE(report) << report.message;
}

}  // namespace
}  // namespace qwen_vl
