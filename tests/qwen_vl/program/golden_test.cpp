// NUM-1: every golden case of transformers (tests/golden/qwen_vl), in fp64: loss, norm, positions, picture tokens, logits, every gradient,
// parameters after three AdamW steps within 1e-9 in every layout, and within 1e-10 of one rank each.
// case 5, case 6, case 7: positions and pictures of several images, videos and paddings are those of the reference.
#include <filesystem>

#include <gtest/gtest.h>

#include <troupe/train/safetensors.hpp>

#include "batch_file.hpp"
#include "checkpoint.hpp"
#include "measure.hpp"
#include "verify.hpp"

namespace qwen_vl {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> all_cases() {
  std::vector<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(QWEN_VL_GOLDEN)) {
    if (entry.path().filename() == "expected.safetensors") out.push_back(entry.path().parent_path());
  }
  std::ranges::sort(out);
  return out;
}

class QwenGolden : public ::testing::TestWithParam<std::string> {};

Tensors run(const std::string& folder, const troupe::Mesh& vision, const troupe::Mesh& language) {
  const ModelConfig config = troupe::or_throw(read_config(folder));
  const RawBatch batch = troupe::or_throw(read_batch(folder + "/batch.safetensors"));
  VerifyOptions options;
  options.layout = {.vision = vision, .language = language, .dtype = at::kDouble};
  return troupe::or_throw(verify(config, [&](Model& model) { return load_checkpoint(model, config, folder); }, batch, options));
}

/// Logits of tokens that see only padding are left out: the reference has no defined ones.
void mask_logits(Tensors& tensors, const at::Tensor& valid) { tensors.at("logits") = tensors.at("logits") * valid.unsqueeze(-1); }

TEST_P(QwenGolden, EveryLayoutSaysWhatTransformersSays) {
  Tensors expected = troupe::or_throw(troupe::read_safetensors(GetParam() + "/expected.safetensors"));
  const auto found = expected.find("logits_valid");
  const at::Tensor valid = found == expected.end() ? at::ones_like(expected.at("logits").select(-1, 0)) : found->second;
  expected.erase("logits_valid");
  mask_logits(expected, valid);
  Tensors serial;
  for (const int sp : {1, 2, 3, 4}) {
    for (const int tp : {1, 2, 4}) {
      Tensors got = run(GetParam(), {{"sp", sp}}, {{"tp", tp}});
      ASSERT_EQ(got.size(), expected.size());
      mask_logits(got, valid);
      const auto [error, name] = worst(got, expected);
      EXPECT_LT(error, 1e-9) << name << " at sp=" << sp << ", tp=" << tp;
      if (serial.empty()) serial = got;
      const auto [apart, which] = worst(got, serial);
      EXPECT_LT(apart, 1e-10) << which << " at sp=" << sp << ", tp=" << tp << " against one rank each";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, QwenGolden, ::testing::ValuesIn(all_cases()), [](const auto& info) { return fs::path(info.param).filename().string(); });

TEST(QwenGoldenCases, AreThere) { EXPECT_GE(all_cases().size(), 12U); }

}  // namespace
}  // namespace qwen_vl
