// NUM-1, NUM-2, EDG-3: the whole model in many layouts against one rank each, to 1e-10: loss, norm, picture tokens, logits, every gradient,
// parameters after three steps. case 2, case 3, case 11: batches of images, video and text alone, in any mix, take one path.
#include <gtest/gtest.h>

#include "../model/tiny.hpp"
#include "measure.hpp"
#include "verify.hpp"

namespace qwen_vl {
namespace {

using troupe::Mesh;

const ModelConfig kConfig = tiny_config();

Tensors run(const std::vector<TinySample>& samples, const Mesh& vision, const Mesh& language, int micro_batches = 1) {
  VerifyOptions options;
  options.layout = {.vision = vision, .language = language, .dtype = at::kDouble, .seed = 7};
  options.micro_batches = micro_batches;
  return troupe::or_throw(verify(kConfig, {}, tiny_batch(kConfig, samples), options));
}

void expect_all_layouts_equal(const std::vector<TinySample>& samples) {
  const Tensors serial = run(samples, {}, {});
  const std::vector<std::pair<Mesh, Mesh>> layouts = {{{{"sp", 2}}, {{"tp", 2}}},           {{{"sp", 3}}, {{"tp", 3}}}, {{{"sp", 4}}, {}},
                                                      {{{"dp", 2}, {"sp", 2}}, {{"tp", 2}}}, {{}, {{"dp", 3}}},          {{{"dp", 3}}, {{"dp", 2}, {"tp", 2}}}};
  for (const auto& [vision, language] : layouts) {
    for (const int micro_batches : {1, 3}) {
      const auto [error, name] = worst(run(samples, vision, language, micro_batches), serial);
      EXPECT_LT(error, 1e-10) << name << " at vision " << vision.to_string() << ", language " << language.to_string() << ", " << micro_batches << " micro-batches";
    }
  }
}

TEST(QwenLayouts, ImagesVideoAndText) { expect_all_layouts_equal(mixed_samples()); }
TEST(QwenLayouts, TextOnlyLeavesTheTowerAlone) {
  const std::vector<TinySample> samples = {{.text = 4}, {.text = 9}, {.text = 6}};
  expect_all_layouts_equal(samples);
  const Tensors out = run(samples, {{"sp", 2}}, {{"tp", 2}});
  VerifyOptions none;
  none.layout = {.dtype = at::kDouble, .seed = 7};
  none.learning_rate = 1e-30;
  none.weight_decay = 0;
  const Tensors before = troupe::or_throw(verify(kConfig, {}, tiny_batch(kConfig, samples), none));
  for (const auto& [name, tensor] : out) {
    if (name.starts_with("grad.visual")) {
      EXPECT_EQ(tensor.count_nonzero().item<std::int64_t>(), 0) << name;
    }
    if (name.starts_with("param.visual")) {
      EXPECT_TRUE(at::equal(tensor, before.at(name))) << name << " moved though no rank saw a picture";
    }
  }
}
TEST(QwenLayouts, OnePictureForManyRanks) { expect_all_layouts_equal({{.images = {{1, 2, 2}}}, {.text = 7}, {.text = 2}}); }
TEST(QwenLayouts, NoLabelAtAll) {
  const std::vector<TinySample> samples = {{.images = {{1, 2, 4}}, .no_labels = true}, {.no_labels = true}};
  const Tensors out = run(samples, {{"sp", 2}}, {{"tp", 2}});
  EXPECT_EQ(out.at("loss").item<double>(), 0);
  EXPECT_EQ(out.at("grad_norm").item<double>(), 0);
}

}  // namespace
}  // namespace qwen_vl
