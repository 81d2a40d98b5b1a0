// NUM-7: what docs/guides/port_a_layer.md says is so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <troupe/testing/parity.hpp>

#include "gated_mlp.hpp"

namespace {

troupe::testing::ParityReport parity(const GatedMlpConfig& config) {
  troupe::Packed x{at::arange(5 * 12, at::kDouble).sin().view({5, 12}), {{.id = 0, .sample = 0, .rows = 3}, {.id = 1, .sample = 1, .rows = 2}}};
  troupe::testing::ParityOptions options;
  options.meshes = {{{"tp", 2}}, {{"tp", 3}}, {{"dp", 2}, {"tp", 2}}};
  options.inputs = {troupe::by_sample("dp")};
  return troupe::testing::expect_parity<GatedMlp>(config, std::tuple{x}, options);
}

TEST(PortALayer, TheFinishedLayerAgreesInEveryLayout) {
  const auto report = parity({12, 7});
  EXPECT_TRUE(report) << report.message;
  EXPECT_LT(report.worst, 1e-12);
}

TEST(PortALayer, AForgottenSumIsFoundAndNamed) {
  const auto report = parity({12, 7, true});
  ASSERT_FALSE(report);
  std::printf("%s\n", report.message.c_str());
  EXPECT_THAT(report.message, ::testing::HasSubstr("norm.weight"));
}

}  // namespace
