#include <gtest/gtest.h>

#include <troupe/testing/parity.hpp>

#include "support/modules.hpp"

namespace troupe {
namespace {

using testing::expect_parity;
using test::Decoder;
using test::DecoderConfig;
using test::Encoder;
using test::EncoderConfig;

constexpr PortLayout::Assign kByCost = PortLayout::Assign::kByCost;

// NUM-1, NUM-3: 3 heads over 1..4 members, items of unequal length that are cut between members
TEST(EncoderParity, EveryMeshOfSpAndDpEqualsTheSerialTwin) {
  testing::ParityOptions options;
  options.meshes = {{{"sp", 1}}, {{"sp", 2}}, {{"sp", 3}}, {{"sp", 4}}, {{"dp", 2}}, {{"dp", 3}}, {{"dp", 4}}, {{"dp", 2}, {"sp", 2}}};
  options.inputs = {balance("dp", "sp")};
  const auto report = expect_parity<Encoder>(EncoderConfig{}, std::tuple{test::items({8, 2, 14, 6, 4, 10}, 5, 2, 5)}, options);
  EXPECT_TRUE(report) << report.message;
  RecordProperty("worst", std::to_string(report.worst));
}

TEST(DecoderParity, EveryMeshOfTpAndDpEqualsTheSerialTwin) {
  testing::ParityOptions options;
  options.meshes = {{{"tp", 2}}, {{"tp", 3}}, {{"tp", 4}}, {{"dp", 2}}, {{"dp", 3}}, {{"dp", 4}}, {{"dp", 2}, {"tp", 2}}, {{"tp", 2}, {"dp", 2}}};
  options.inputs = {by_sample("dp"), by_sample("dp")};
  options.micro_batches = 2;
  const auto report = expect_parity<Decoder>(DecoderConfig{}, std::tuple{test::text_of(5, 6, 13), test::items({3, 1, 2, 4, 2}, 6, 1, 5)}, options);
  EXPECT_TRUE(report) << report.message;
}

}  // namespace
}  // namespace troupe
