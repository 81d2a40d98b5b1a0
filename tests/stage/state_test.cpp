// What a run is made of, taken out and put back: parameters by slices, where sources stand, optimizer state by name.
#include <gtest/gtest.h>

#include <numeric>

#include <ATen/ATen.h>

#include "support/map_reader.hpp"
#include "support/program.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;
using test::differing;
using test::MapReader;
using test::Program;

using Tensors = std::map<std::string, at::Tensor>;

std::string as_it_is(const std::string& name) { return name; }

/// Other values of the same names and shapes.
Tensors changed(const Tensors& tensors) {
  Tensors out;
  double phase = 1;
  for (const auto& [name, tensor] : tensors) out.emplace(name, test::scattered(tensor.sizes().vec(), phase++).to(tensor.scalar_type()));
  return out;
}

std::int64_t sum(const std::vector<std::int64_t>& values) { return std::accumulate(values.begin(), values.end(), std::int64_t{0}); }

TEST(LoadSlices, EveryByteOfAShardedTensorIsReadByOneRank) {
  Program program({.encoder = {{"sp", 2}}, .decoder = {{"tp", 3}}});
  const Tensors wanted = changed(or_throw(program.graph.parameters(10s)));
  const auto reader = std::make_shared<MapReader>(wanted);
  or_throw(program.graph.load(reader, as_it_is, 10s));
  EXPECT_EQ(differing(or_throw(program.graph.parameters(10s)), wanted), "");
  for (const auto* name : {"decoder.tokens.weight", "decoder.qkv.weight", "decoder.out.weight", "decoder.up.bias"}) {
    EXPECT_EQ(reader->reads_of(name).size(), 3U) << name;
    EXPECT_EQ(sum(reader->reads_of(name)), wanted.at(name).numel()) << name;
  }
  EXPECT_EQ(reader->reads_of("encoder.qkv.weight"), std::vector<std::int64_t>(2, wanted.at("encoder.qkv.weight").numel())) << "replicated: each has all";
}

TEST(LoadSlices, NamesMayDifferAndTheStagesDtypeCounts) {
  Program program;
  Tensors stored;
  for (const auto& [name, tensor] : changed(or_throw(program.decoder.parameters(10s)))) stored.emplace("model." + name.substr(8), tensor.to(at::kBFloat16));
  or_throw(program.decoder.load(std::make_shared<MapReader>(stored), [](const std::string& name) { return "model." + name.substr(8); }, 10s));
  for (const auto& [name, tensor] : or_throw(program.decoder.parameters(10s))) {
    EXPECT_EQ(tensor.scalar_type(), at::kDouble) << name;
    EXPECT_TRUE(at::equal(tensor, stored.at("model." + name.substr(8)).to(at::kDouble))) << name;
  }
}

TEST(LoadSlices, WhatIsMissingOrMisshapenIsNamedBeforeAnythingIsChanged) {
  Program program({.decoder = {{"tp", 2}}});
  const Tensors before = or_throw(program.graph.parameters(10s));
  Tensors stored = changed(before);
  stored.erase("decoder.up.weight");   // the encoder, which comes first, is whole
  const auto missing = program.graph.load(std::make_shared<MapReader>(stored), as_it_is, 10s);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Errc::kMismatch);
  EXPECT_NE(missing.error().message.find("decoder.up.weight"), std::string::npos) << missing.error().message;
  stored = changed(before);
  stored.at("decoder.out.weight") = at::zeros({12, 11});
  const auto misshapen = program.graph.load(std::make_shared<MapReader>(stored), as_it_is, 10s);
  ASSERT_FALSE(misshapen);
  EXPECT_NE(misshapen.error().message.find("decoder.out.weight': expected [12, 12], got [12, 11]"), std::string::npos) << misshapen.error().message;
  EXPECT_EQ(differing(or_throw(program.graph.parameters(10s)), before), "");
}

// POOL-7: past the checks a stage may be half read
TEST(LoadSlices, AReadThatFailsLeavesTheStageInconsistent) {
  Program program({.decoder = {{"tp", 2}}});
  const auto reader = std::make_shared<MapReader>(changed(or_throw(program.decoder.parameters(10s))));
  reader->broken = "decoder.up.weight";
  const auto failed = program.decoder.load(reader, as_it_is, 10s);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::kIo) << failed.error().describe();
  reader->broken.clear();
  const auto refused = program.decoder.load(reader, as_it_is, 10s);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kInconsistent) << refused.error().describe();
  EXPECT_NE(refused.error().describe().find("the disk is gone"), std::string::npos) << refused.error().describe();
  or_throw(program.decoder.pool().reset(10s));
  or_throw(program.decoder.load(reader, as_it_is, 10s));
  const auto without = program.graph.step(program.optimizer, {.deadline = 20s});
  ASSERT_FALSE(without) << "what the optimizer kept went with the reset";
  EXPECT_EQ(without.error().code, Errc::kInvalidArgument) << without.error().describe();
  program.optimizer = or_throw(program.graph.optimizer({}));
  EXPECT_TRUE(program.graph.step(program.optimizer, {.deadline = 20s}));
}

// not after those made ahead: three more lie ready
TEST(SourceState, IsThatOfTheBatchesTaken) {
  Program program({.prefetch = 3});
  EXPECT_EQ(or_throw(program.data.state(10s)), "0");
  (void)program.train(2);
  EXPECT_EQ(or_throw(program.data.state(10s)), "2");
}

TEST(SourceState, RestoreDropsWhatWasMadeAhead) {
  Program program({.prefetch = 3});
  (void)program.train(2);
  const auto third = or_throw(program.graph.evaluate({.deadline = 60s})).loss;
  (void)or_throw(program.graph.evaluate({.deadline = 60s}));
  or_throw(program.data.restore("2", 10s));
  EXPECT_EQ(or_throw(program.data.state(10s)), "2");
  EXPECT_EQ(or_throw(program.graph.evaluate({.deadline = 60s})).loss, third);
  EXPECT_EQ(or_throw(program.data.state(10s)), "3");
}

TEST(SourceState, TheEndOfDataStaysTheEnd) {
  Program program({.data = {.batches = 1}});
  (void)program.train(1);
  EXPECT_EQ(program.graph.step(program.optimizer, {.deadline = 60s}).error().code, Errc::kEndOfData);
  const std::string end = or_throw(program.data.state(10s));
  or_throw(program.data.restore("0", 10s));
  EXPECT_EQ(or_throw(program.graph.evaluate({.deadline = 60s})).samples, 5);
  or_throw(program.data.restore(end, 10s));
  EXPECT_EQ(program.graph.step(program.optimizer, {.deadline = 60s}).error().code, Errc::kEndOfData);
}

TEST(SourceState, AStateItCanNotReadIsItsOwnError) {
  Program program;
  const auto failed = program.data.restore("the third", 10s);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::kBadData);
  EXPECT_NE(failed.error().describe().find("got 'the third'"), std::string::npos) << failed.error().describe();
}

class Forgetful {
 public:
  explicit Forgetful(const test::StreamConfig& config) : stream_(config) {}
  std::optional<test::TwoStageBatch> next() { return stream_.next(); }

 private:
  test::Stream stream_;
};

TEST(SourceState, ASourceThatCanNotSayIsNamed) {
  Program program;
  const auto forgetful = or_throw(program.graph.source<Forgetful>({.name = "forgetful"}, test::StreamConfig{}));
  const auto state = program.graph.source_states(10s);
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().code, Errc::kInvalidArgument);
  EXPECT_NE(state.error().message.find("source forgetful can't say where it stands"), std::string::npos) << state.error().message;
  EXPECT_FALSE(forgetful.restore("1", 10s));
}

TEST(SourceState, NamesMustBeTheGraphs) {
  Program program;
  EXPECT_EQ(program.graph.restore_sources({}, 10s).error().code, Errc::kMismatch);
  EXPECT_EQ(program.graph.restore_sources({{"data", "1"}, {"other", "1"}}, 10s).error().code, Errc::kMismatch);
  EXPECT_EQ(or_throw(program.data.state(10s)), "0") << "nothing was restored";
}

// tensors are global: the same in any layout up to the order of sums, and bit for bit once stored
TEST(OptimizerState, MovesToAnotherLayout) {
  Program serial;
  Program sharded({.encoder = {{"dp", 2}, {"sp", 2}}, .decoder = {{"dp", 2}, {"tp", 2}}});
  (void)serial.train(3);
  (void)sharded.train(3);
  const Tensors state = or_throw(serial.optimizer.state(10s));
  const Tensors other = or_throw(sharded.optimizer.state(10s));
  ASSERT_EQ(state.size(), other.size());
  for (const auto& [name, tensor] : state) EXPECT_TRUE(at::allclose(tensor, other.at(name), 1e-9, 1e-12)) << name;
  EXPECT_EQ(state.at("updates.decoder.up.bias").item<double>(), 3);
  EXPECT_GT(state.at("second.decoder.qkv.weight").max().item<double>(), 0);

  Program fresh({.encoder = {{"sp", 3}}, .decoder = {{"tp", 3}}});
  or_throw(fresh.optimizer.load(std::make_shared<MapReader>(state), 3, 10s));
  EXPECT_EQ(differing(or_throw(fresh.optimizer.state(10s)), state), "");
  EXPECT_EQ(fresh.optimizer.steps(), 3);
  EXPECT_EQ(fresh.step().step, 4);
}

// case 4: the encoder never saw an element
TEST(OptimizerState, OfAStageThatNeverStepsIsZero) {
  Program program({.encoder = {{"sp", 2}}, .data = {.text_only = 2}});
  (void)program.train(2);
  const Tensors state = or_throw(program.optimizer.state(10s));
  for (const auto& [name, tensor] : state) {
    const bool is_encoders = name.find(".encoder.") != std::string::npos;
    if (is_encoders || name.starts_with("updates.")) {
      EXPECT_EQ(tensor.abs().sum().item<double>(), is_encoders ? 0 : 2) << name;
    }
  }
  EXPECT_TRUE(state.contains("first.encoder.embed.weight"));
}

TEST(OptimizerState, WhatIsMissingIsNamedBeforeAnythingIsChanged) {
  Program program({.decoder = {{"tp", 2}}});
  (void)program.train(1);
  const Tensors before = or_throw(program.optimizer.state(10s));
  Tensors stored = changed(before);
  stored.erase("second.decoder.up.weight");
  const auto missing = program.optimizer.load(std::make_shared<MapReader>(stored), 9, 10s);
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("second.decoder.up.weight"), std::string::npos) << missing.error().message;
  EXPECT_EQ(differing(or_throw(program.optimizer.state(10s)), before), "");
  EXPECT_EQ(program.optimizer.steps(), 1);
}

}  // namespace
}  // namespace troupe
