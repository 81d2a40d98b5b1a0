#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config.hpp"
#include "parallelize.hpp"
#include "tiny.hpp"

namespace qwen_vl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kVision = R"("vision_config": {"depth": 2, "hidden_size": 24, "num_heads": 3, "intermediate_size": 10, "out_hidden_size": 32, "in_chans": 1,
  "patch_size": [4, 4], "window_size": 16, "fullatt_block_indexes": [1], "tokens_per_second": 3})";
const std::string kText = R"("hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 7, "vocab_size": 99, "rms_norm_eps": 1e-6)";

TEST(ParseConfig, ReadsThePublishedFlatForm) {
  const auto got = parse_config("{" + kVision + ", " + kText + R"(, "rope_theta": 5.0, "rope_scaling": {"type": "mrope", "mrope_section": [2, 1, 1]}, "tie_word_embeddings": true, "image_token_id": 7})", "f");
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->vision.channels, 1);
  EXPECT_EQ(got->vision.patch, 4);
  EXPECT_EQ(got->language.head_dim, 8);
  EXPECT_EQ(got->language.rope_theta, 5);
  EXPECT_THAT(got->language.sections, ElementsAre(2, 1, 1));
  EXPECT_TRUE(got->language.tied);
  EXPECT_EQ(got->tokens.image, 7);
  EXPECT_EQ(got->tokens_per_second, 3);
}

TEST(ParseConfig, ReadsTheNestedFormOfTransformers5) {
  const auto got = parse_config("{" + kVision + R"(, "text_config": {)" + kText + R"(, "rope_parameters": {"rope_type": "default", "rope_theta": 5.0, "mrope_section": [2, 1, 1]}}, "tie_word_embeddings": false})", "f");
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->language.layers, 3);
  EXPECT_EQ(got->language.rope_theta, 5);
  EXPECT_FALSE(got->language.tied);
}

TEST(ParseConfig, WritesWhatItReads) {
  const ModelConfig config = tiny_config();
  const auto got = parse_config(config_json(config), "f");
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(config_json(*got), config_json(config));
  EXPECT_EQ(got->vision.full_attention, config.vision.full_attention);
}

// transformers 5 refuses a folder whose "tokens_per_second" is 2.0; found by round_trip.py
TEST(ParseConfig, WritesIntegersAsIntegers) {
  EXPECT_THAT(config_json(tiny_config()), ::testing::ContainsRegex("\"tokens_per_second\": [0-9]+[,\n]"));
}

TEST(ParseConfig, NamesFileKeyExpectedAndGot) {
  const std::string rope = R"(, "rope_scaling": {"type": "mrope", "mrope_section": [2, 1, 1]})";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{", "JSON object"},
      {"{" + kText + rope + "}", "'vision_config' is missing"},
      {"{" + kVision + ", " + kText + R"(, "rope_scaling": {"type": "mrope"}})", "'mrope_section' is missing"},
      {"{" + kVision + ", " + kText + R"(, "rope_scaling": {"type": "yarn", "mrope_section": [2, 1, 1]}})", "yarn"},
      {"{" + kVision + ", " + kText + R"(, "rope_scaling": {"type": "mrope", "mrope_section": [2, 1, 2]}})", "head_dim / 2 = 4"},
      {"{" + kVision + ", " + kText + rope + R"(, "use_sliding_window": true})", "'use_sliding_window' must be false, got true"},
      {"{" + kVision + ", " + kText + rope + R"(, "hidden_act": "gelu"})", "'hidden_act' must be \"silu\""},
      {"{" + kVision + ", " + kText + rope + R"(, "num_hidden_layers": "two"})", "'num_hidden_layers' must be a whole number"},
      {"{" + kVision + ", " + kText + rope + R"(, "num_key_value_heads": 3})", "num_attention_heads 4 must be divisible by num_key_value_heads 3"},
      {"{" + kVision + ", " + kText + rope + R"(, "hidden_size": 34})", "hidden_size 34 must be divisible"},
  };
  for (const auto& [json, expected] : cases) {
    const auto got = parse_config(json, "m/config.json");
    ASSERT_FALSE(got) << expected;
    EXPECT_THAT(got.error().message, AllOf(HasSubstr(expected), HasSubstr("m/config.json"))) << json;
  }
}

TEST(Parallelize, NamesAnAxisThatNoModuleKnows) {
  const auto got = parallelize(tiny_config(), {.vision = {{"tp", 2}}});
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().message, AllOf(HasSubstr("vision"), HasSubstr("'tp'"), HasSubstr("dp, sp")));
}

TEST(CheckpointName, FollowsThePublishedNames) {
  EXPECT_EQ(checkpoint_name("vision.blocks.0.attn.qkv.weight"), "visual.blocks.0.attn.qkv.weight");
  EXPECT_EQ(checkpoint_name("language.model.layers.1.mlp.up_proj.weight"), "model.layers.1.mlp.up_proj.weight");
  EXPECT_EQ(checkpoint_name("language.lm_head.weight"), "lm_head.weight");
}

}  // namespace
}  // namespace qwen_vl
