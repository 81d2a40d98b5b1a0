// graph.check() runs the whole step on tensors without data (NUM-6).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include <troupe/base/text.hpp>
#include <troupe/stage/environment.hpp>

#include "support/program.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using test::differing;
using test::Program;
using test::TwoStageBatch;

/// What a module may do wrong; each on ranks that have data it would do well.
enum class Habit : int { kNone, kItem, kCondition, kPointer, kMask, kWrongDim, kHostTensor, kOddOperator, kReadsInConstructor, kSkipsACollective };

struct HabitConfig {
  Habit habit = Habit::kNone;
  static auto troupe_fields(auto& self) { return std::tie(self.habit); }
};

class Habitual {
 public:
  Habitual(Rank& rank, const HabitConfig& config) : rank_(rank), habit_(config.habit), linear_(rank.parameters("linear"), 5, 6) {
    if (habit_ == Habit::kReadsInConstructor) scale_ = rank.parameters("more").add("weight", {1}, Initial::constant(1)).item<double>();
  }

  Packed forward(const Packed& in) {
    at::Tensor y = linear_.forward(in.rows) * scale_;
    switch (habit_) {
      case Habit::kItem: y = y / y.abs().max().item<double>(); break;
      case Habit::kCondition: if (y.gt(1e30).any().item<bool>()) y = y * 2; break;
      case Habit::kPointer: if (y.data_ptr<double>()[0] > 1e30) y = y * 2; break;
      case Habit::kMask: y = y + y.masked_select(y > 1e30).sum(); break;
      case Habit::kWrongDim: y = y.narrow(1, 0, 5); break;
      case Habit::kHostTensor: y = y + at::zeros_like(y, at::TensorOptions().device(at::kCPU)).copy_(y); break;
      case Habit::kOddOperator: y = at::log_sigmoid(y.unsqueeze(0).expand({large_ / std::max<std::int64_t>(y.numel(), 1) + 1, -1, -1})).select(0, 0); break;
      case Habit::kSkipsACollective: if (rank_.index() == 0) or_throw(rank_.world().barrier()); break;
      default: break;
    }
    return {y, in.segments};
  }

 private:
  Rank& rank_;
  Habit habit_;
  Linear linear_;
  double scale_ = 1;
  std::int64_t large_ = 20'000'000;
};

class Rehearsal : public ::testing::Test {
 protected:
  Result<void> check(Habit habit, Mesh mesh = {{"dp", 2}}) {
    RuntimeOptions options;
    options.environment = torch_environment();
    options.log = [this](LogLevel, std::string_view line) { said.emplace_back(line); };
    const Runtime runtime = or_throw(Runtime::create(std::move(options)));
    Graph graph(runtime);
    const auto data = or_throw(graph.source<test::Stream>({}, test::StreamConfig{}));
    StageOptions stage{.name = "habitual", .mesh = std::move(mesh), .dtype = c10::ScalarType::Double, .collective_deadline = 1s};
    const auto module = or_throw(graph.stage<Habitual>(std::move(stage), HabitConfig{habit}));
    const auto decoder = or_throw(graph.stage<test::Decoder>({.name = "decoder", .dtype = c10::ScalarType::Double}, test::DecoderConfig{}));
    graph.connect(data.out<&TwoStageBatch::patches>(), module.in<0>(), {.to = by_sample("dp")});
    graph.connect(data.out<&TwoStageBatch::text>(), decoder.in<0>(), {.to = by_sample("dp")});
    graph.connect(module.out(), decoder.in<1>(), {.to = by_sample("dp", Grad::kReplicated)});
    auto checked = graph.check();
    if (checked) {
      const auto again = graph.check();
      EXPECT_TRUE(again) << again.error().describe();
    }
    return checked;
  }

  void expect_refused(Habit habit, Errc code, const std::string& why, const Mesh& mesh = {{"dp", 2}}) {
    const auto refused = check(habit, mesh);
    ASSERT_FALSE(refused) << "was let through";
    EXPECT_EQ(refused.error().code, code) << refused.error().describe();
    EXPECT_THAT(refused.error().message, HasSubstr(why));
    EXPECT_TRUE(said.empty()) << said.front();
  }

  std::vector<std::string> said;
};

TEST_F(Rehearsal, AHealthyGraphPassesAndSaysNothing) {
  const auto checked = check(Habit::kNone);
  EXPECT_TRUE(checked) << checked.error().describe();
  EXPECT_TRUE(said.empty()) << said.front();
}

// NUM-6: named with the stage, the operator and what to do instead
TEST_F(Rehearsal, ReadsOfValuesAreRefused) {
  const std::string stage = "stage habitual, forward on tensors without data";
  expect_refused(Habit::kItem, Errc::kInvalidArgument, stage);
  expect_refused(Habit::kItem, Errc::kInvalidArgument, "take counts, lengths and choices from host integers");
  expect_refused(Habit::kCondition, Errc::kInvalidArgument, "aten::_local_scalar_dense reads a tensor's values on the host");
  expect_refused(Habit::kPointer, Errc::kUserException, stage);
  expect_refused(Habit::kMask, Errc::kInvalidArgument, "aten::masked_select makes a tensor whose shape depends on values");
  expect_refused(Habit::kHostTensor, Errc::kInvalidArgument, "make that tensor by x.options()");
}

TEST_F(Rehearsal, AWrongDimIsFoundWhereItDoesNotFit) {
  expect_refused(Habit::kWrongDim, Errc::kMismatch, "stage decoder, forward on tensors without data (NUM-6): aten::index_add: expected Double [30, 6] for index [30], got Double [30, 5]");
}

TEST_F(Rehearsal, CollectivesThatDoNotMeetAreFound) {
  const auto refused = check(Habit::kSkipsACollective);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kTimeout) << refused.error().describe();
  EXPECT_THAT(refused.error().message, HasSubstr("stage habitual, forward"));
}

// said, not hidden, and not held against the module
TEST_F(Rehearsal, WhatCanNotBeRunIsSaidOnce) {
  EXPECT_TRUE(check(Habit::kOddOperator));
  ASSERT_EQ(said.size(), 1U);
  EXPECT_THAT(said.front(), HasSubstr("forward of stage habitual: operator aten::log_sigmoid_forward has no shape function"));
  said.clear();
  EXPECT_TRUE(check(Habit::kReadsInConstructor)) << "the constructor is no part of a step";
  ASSERT_EQ(said.size(), 1U);
  EXPECT_THAT(said.front(), HasSubstr("constructor of stage habitual: operator aten::_local_scalar_dense"));
}

test::ProgramOptions quiet(bool rehearse) {
  test::ProgramOptions out{.encoder = {{"dp", 2}, {"sp", 2}}, .decoder = {{"tp", 3}}, .prefetch = 1};
  out.rehearse = rehearse;
  return out;
}

// the first batch is still the first; parameters, moments and generators are as without it, bit for bit
TEST(RehearsalLeaves, TheRunAsItIs) {
  at::manual_seed(3);
  Program with(quiet(true));
  EXPECT_EQ(or_throw(with.data.state(10s)), "0") << "looked at, not taken";
  const at::Tensor draw = at::rand({3});
  at::manual_seed(3);
  Program without(quiet(false));
  EXPECT_TRUE(at::equal(draw, at::rand({3}))) << "the host's generator";
  EXPECT_EQ(with.runtime.status().copied_bytes, without.runtime.status().copied_bytes);
  EXPECT_EQ(with.runtime.status().referenced_bytes, without.runtime.status().referenced_bytes);
  EXPECT_EQ(differing(or_throw(with.graph.parameters(10s)), or_throw(without.graph.parameters(10s))), "");
  EXPECT_EQ(with.train(3), without.train(3));
  EXPECT_EQ(differing(or_throw(with.graph.parameters(10s)), or_throw(without.graph.parameters(10s))), "");
  EXPECT_EQ(differing(or_throw(with.optimizer.state(10s)), or_throw(without.optimizer.state(10s))), "");
  EXPECT_EQ(or_throw(with.data.state(10s)), "3");
}

TEST(RehearsalLeaves, NoPoolBehind) {
  const Program program(quiet(true));
  const Deadline until = program.runtime.clock().after(10s);
  std::size_t pools = 0;
  do pools = program.runtime.status().pools.size();
  while (pools > 3 && program.runtime.clock().now() < until.time());
  EXPECT_EQ(pools, 3U) << "data, encoder, decoder";
}

// case 3: batches without any item take the same path
TEST(RehearsalRuns, TextOnly) {
  EXPECT_NO_THROW(Program({.encoder = {{"sp", 2}}, .decoder = {{"tp", 2}}, .data = {.text_only = 5}}));
}

}  // namespace
}  // namespace troupe
