// Two stages of any sizes against their serial twin: loss, every gradient, parameters after 3 steps.
#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include "support/two_stage.hpp"

namespace troupe {
namespace {

using test::run_two_stage;
using test::trace_two_stage;
using test::TwoStageOptions;

void expect_same(const TwoStageOptions& options, const testing::ParityRun& serial) {
  const auto report = testing::compare(serial, run_two_stage(options), "encoder " + options.encoder.to_string() + ", decoder " + options.decoder.to_string(), 1e-10);
  EXPECT_TRUE(report) << report.message;
}

// EDG-1, EDG-2: sequence-parallel encoder of M ranks, tensor-parallel decoder of N
TEST(Edges, SequenceParallelToTensorParallelOfAnySizes) {
  const auto serial = run_two_stage({});
  for (int m = 1; m <= 4; ++m) {
    for (int n = 1; n <= 4; ++n) expect_same({.encoder = {{"sp", m}}, .decoder = {{"tp", n}}}, serial);
  }
}

// case 10: data-parallel encoder and decoder of different sizes; a gradient must not be off by their ratio
TEST(Edges, DataParallelSizesMayDiffer) {
  const auto serial = run_two_stage({});
  for (int m = 1; m <= 4; ++m) {
    for (int n = 1; n <= 4; ++n) expect_same({.encoder = {{"dp", m}}, .decoder = {{"dp", n}}}, serial);
  }
}

TEST(Edges, ProductsOfAxesOnBothSides) {
  const auto serial = run_two_stage({});
  expect_same({.encoder = {{"dp", 2}, {"sp", 2}}, .decoder = {{"dp", 2}, {"tp", 2}}}, serial);
  expect_same({.encoder = {{"sp", 2}, {"dp", 2}}, .decoder = {{"tp", 2}, {"dp", 2}}}, serial);
  expect_same({.encoder = {{"sp", 3}}, .decoder = {{"dp", 2}, {"tp", 2}}}, serial);
}

// case 12, NUM-2: unequal masks x micro-batches x data parallelism; the mean is over all valid tokens
TEST(Edges, MicroBatchesDoNotChangeTheMean) {
  const auto serial = run_two_stage({});
  for (const int micro : {2, 3, 5}) {
    expect_same({.micro_batches = micro}, serial);
    expect_same({.encoder = {{"sp", 2}}, .decoder = {{"dp", 3}}, .micro_batches = micro}, serial);
  }
}

// case 8: lengths 1, 7 (prime), P-1, P, P+1 units over P = 4 ranks, ranks left without rows included
TEST(Edges, ShortAndUnevenItems) {
  for (const std::vector<std::int64_t>& rows : {std::vector<std::int64_t>{2}, {14}, {6}, {8}, {10}, {2, 26, 2}, {0, 4, 0}}) {
    const auto serial = run_two_stage({.items = rows, .samples = 3});
    expect_same({.encoder = {{"sp", 4}}, .decoder = {{"tp", 2}}, .items = rows, .samples = 3}, serial);
    expect_same({.encoder = {{"dp", 2}, {"sp", 2}}, .decoder = {{"dp", 2}}, .items = rows, .samples = 3}, serial);
  }
}

// NUM-1, NUM-8: the same layout gives the same bits, sums of 3 and 4 members included
TEST(Edges, TwoRunsAreTheSameBits) {
  const TwoStageOptions options{.encoder = {{"sp", 3}}, .decoder = {{"dp", 2}, {"tp", 2}}, .micro_batches = 2};
  EXPECT_TRUE(testing::identical(run_two_stage(options), run_two_stage(options)));
}

// case 3, EDG-3: text only; no hang, gradients exactly zero, the encoder's parameters untouched
TEST(Edges, TextOnlyLeavesTheEncoderUntouched) {
  const TwoStageOptions options{.encoder = {{"sp", 2}}, .decoder = {{"tp", 2}}, .items = {}, .steps = 2};
  const auto trained = trace_two_stage(options);
  TwoStageOptions start = options;
  start.steps = 0;
  const auto before = run_two_stage(start).parameters;
  EXPECT_EQ(trained.last.skipped_stages, std::vector<std::string>{"encoder"});
  for (const auto& [name, gradient] : trained.run.last_gradients) {
    if (!name.starts_with("encoder.")) continue;
    EXPECT_EQ(gradient.abs().sum().item<double>(), 0) << name;
  }
  bool decoder_moved = false;
  for (const auto& [name, parameter] : trained.run.parameters) {
    const bool same = at::equal(parameter, before.at(name));
    EXPECT_TRUE(same || !name.starts_with("encoder.")) << name;
    decoder_moved = decoder_moved || (!same && name.starts_with("decoder."));
  }
  EXPECT_TRUE(decoder_moved);
}

// case 18, NUM-3: replicated parameters count once in the norm
TEST(Edges, NormIsThatOfTheGatheredGradients) {
  const auto run = run_two_stage({.encoder = {{"dp", 2}, {"sp", 2}}, .decoder = {{"tp", 3}}, .steps = 1});
  double squares = 0;
  for (const auto& [name, gradient] : run.first_gradients) squares += gradient.square().sum().item<double>();
  EXPECT_NEAR(run.norms[0], std::sqrt(squares), 1e-12 * run.norms[0]);
}

TEST(Edges, ClippingUsesTheGlobalNorm) {
  const auto serial = run_two_stage({.clip = 0.01});
  const auto report = testing::compare(serial, run_two_stage({.encoder = {{"sp", 2}}, .decoder = {{"tp", 2}}, .clip = 0.01}), "clipped", 1e-10);
  EXPECT_TRUE(report) << report.message;
  EXPECT_GT(serial.norms[0], 0.01);
}

TEST(Edges, TapesSubmitTheSameAsAStep) {
  TwoStageOptions options{.encoder = {{"sp", 2}}, .decoder = {{"tp", 2}}, .micro_batches = 2};
  const auto by_step = run_two_stage(options);
  options.level_b = true;
  const auto by_tape = run_two_stage(options);
  EXPECT_EQ(by_step.losses, by_tape.losses);
  for (const auto& [name, parameter] : by_step.parameters) EXPECT_TRUE(at::equal(parameter, by_tape.parameters.at(name))) << name;
}

// EDG-1: each destination receives each byte it needs once
TEST(Edges, BytesByEdgeAreWhatTheLayoutNeeds) {
  const auto trace = trace_two_stage({.encoder = {{"sp", 2}}, .decoder = {{"tp", 2}}, .steps = 1});
  const std::int64_t rows = (8 + 2 + 14 + 6 + 4 + 10 + 2) / 2;
  const auto& edge = trace.last.bytes_by_edge.at("encoder -> decoder.in1");
  EXPECT_EQ(edge.referenced + edge.copied, 2 * rows * 6 * 8);   // both tp ranks need all rows
  const auto& back = trace.last.bytes_by_edge.at("encoder -> decoder.in1 (gradient)");
  EXPECT_EQ(back.referenced + back.copied, rows * 6 * 8);       // each sp rank takes its own from one replica
}

}  // namespace
}  // namespace troupe
