// A run that was saved and resumed in a new runtime goes on bit for bit. case 4: also when a stage never saw an element.
// case 15: saved in one layout, loaded in others.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include <troupe/testing/parity.hpp>
#include <troupe/train/files.hpp>
#include <troupe/train/resume.hpp>

#include "support/modules.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

struct TwoBatch {
  Packed patches;
  Text text;
  static auto troupe_fields(auto& self) { return std::tie(self.patches, self.text); }
};

/// Batch n has its own pictures and sizes; every other has none when asked.
class Numbered {
 public:
  explicit Numbered(const bool& pictures) : pictures_(pictures) {}
  std::optional<TwoBatch> next() {
    const std::int64_t n = made_++;
    Packed patches = items(pictures_ ? std::vector<std::int64_t>{4 + 2 * (n % 3), 6, 2 * (n % 4) + 2} : std::vector<std::int64_t>{}, 5, 2, 3);
    patches.rows = patches.rows + 0.1 * static_cast<double>(n);
    return TwoBatch{std::move(patches), text_of(3, 4 + n % 3, 13)};
  }
  [[nodiscard]] std::string state() const { return std::to_string(made_); }
  void restore(const std::string& state) { made_ = std::stoll(state); }

 private:
  bool pictures_;
  std::int64_t made_ = 0;
};

struct Job {
  Graph graph;
  Optimizer optimizer;
};

StageOptions stage_options(const char* name, const Mesh& mesh) {
  StageOptions out;
  out.name = name;
  out.mesh = mesh;
  out.dtype = c10::ScalarType::Double;
  return out;
}

Job make_job(const Mesh& encoder_mesh, const Mesh& decoder_mesh, bool pictures = true, std::uint64_t seed = 11) {
  RuntimeOptions options;
  options.environment = torch_environment();
  Graph graph(or_throw(Runtime::create(std::move(options))), {.seed = seed});
  const auto data = or_throw(graph.source<Numbered>({.prefetch = 3}, pictures));
  const auto encoder = or_throw(graph.stage<Encoder>(stage_options("encoder", encoder_mesh), EncoderConfig{}));
  const auto decoder = or_throw(graph.stage<Decoder>(stage_options("decoder", decoder_mesh), DecoderConfig{}));
  graph.connect(data.out<&TwoBatch::patches>(), encoder.in<0>(), {.to = balance("dp", "sp")});
  graph.connect(data.out<&TwoBatch::text>(), decoder.in<0>(), {.to = by_sample("dp")});
  graph.connect(encoder.out(), decoder.in<1>(), {.to = by_sample("dp", Grad::kReplicated)});
  auto optimizer = or_throw(graph.optimizer({.groups = {{"*", 1e-2, 0.01}}, .clip = 1, .warmup_steps = 2, .total_steps = 8}));
  return {std::move(graph), std::move(optimizer)};
}

std::vector<double> train(Job& job, int steps) {
  std::vector<double> out;
  for (int step = 0; step < steps; ++step) out.push_back(or_throw(job.graph.step(job.optimizer, {.micro_batches = 2, .deadline = 60s})).loss);
  return out;
}

struct End {
  std::vector<double> losses;
  std::map<std::string, at::Tensor> tensors;   ///< Parameters and moments.
};
End end_of(Job& job, std::vector<double> losses) {
  End out{std::move(losses), or_throw(job.graph.parameters(10s))};
  out.tensors.merge(or_throw(job.optimizer.state(10s)));
  return out;
}

void expect_same_bits(const End& got, const End& expected) {
  EXPECT_EQ(got.losses, expected.losses);
  ASSERT_EQ(got.tensors.size(), expected.tensors.size());
  for (const auto& [name, tensor] : expected.tensors) EXPECT_TRUE(at::equal(tensor, got.tensors.at(name))) << name;
}

class Resume : public ::testing::Test {
 protected:
  Resume() : folder_(fs::temp_directory_path() / ("troupe-resume-" + std::to_string(::getpid()) + ::testing::UnitTest::GetInstance()->current_test_info()->name())) { fs::remove_all(folder_); }
  ~Resume() override { fs::remove_all(folder_); }

  void expect_resumes(const Mesh& encoder, const Mesh& decoder, bool pictures) {
    Job whole = make_job(encoder, decoder, pictures);
    auto losses = train(whole, 6);
    const End expected = end_of(whole, {losses.begin() + 3, losses.end()});
    {
      Job first = make_job(encoder, decoder, pictures);
      train(first, 3);
      or_throw(save_training(first.graph, first.optimizer, {.folder = folder_, .note = "mine"}));
    }
    Job second = make_job(encoder, decoder, pictures);
    const auto saved = or_throw(latest_training(folder_));
    ASSERT_TRUE(saved);
    EXPECT_EQ(saved->step, 3);
    EXPECT_EQ(saved->note, "mine");
    or_throw(resume_training(second.graph, second.optimizer, *saved));
    EXPECT_EQ(second.optimizer.steps(), 3);
    losses = train(second, 3);
    expect_same_bits(end_of(second, losses), expected);
  }

  std::string folder_;
};

TEST_F(Resume, GoesOnBitForBitInOneRank) { expect_resumes({}, {}, true); }
TEST_F(Resume, GoesOnBitForBitInAnyLayout) { expect_resumes({{"dp", 2}, {"sp", 2}}, {{"dp", 2}, {"tp", 2}}, true); }
TEST_F(Resume, GoesOnWhenAStageSawNothing) { expect_resumes({{"sp", 2}}, {{"tp", 2}}, false); }

TEST_F(Resume, GoesOnInAnotherLayout) {
  Job first = make_job({{"sp", 2}}, {{"tp", 2}});
  train(first, 3);
  or_throw(save_training(first.graph, first.optimizer, {.folder = folder_}));
  const auto losses = train(first, 2);
  Job second = make_job({{"dp", 3}}, {{"tp", 3}});
  or_throw(resume_training(second.graph, second.optimizer, *or_throw(latest_training(folder_))));
  const auto again = train(second, 2);
  for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(again[i], losses[i], 1e-12);
}

TEST_F(Resume, KeepsTheLastAndIgnoresWhatIsNotWhole) {
  Job job = make_job({}, {});
  for (int i = 0; i < 4; ++i) {
    train(job, 1);
    or_throw(save_training(job.graph, job.optimizer, {.folder = folder_, .keep = 2}));
  }
  EXPECT_FALSE(fs::exists(folder_ + "/step-00000002"));
  EXPECT_TRUE(fs::exists(folder_ + "/step-00000003"));
  fs::create_directories(folder_ + "/step-00000009.part");   // killed while it wrote
  fs::create_directories(folder_ + "/step-00000010");        // something else's
  EXPECT_EQ(or_throw(latest_training(folder_))->step, 4);
}

TEST_F(Resume, NoFolderIsNoCheckpoint) { EXPECT_FALSE(or_throw(latest_training(folder_))); }

TEST_F(Resume, RefusesAnotherRun) {
  Job job = make_job({}, {});
  train(job, 1);
  or_throw(save_training(job.graph, job.optimizer, {.folder = folder_}));
  const auto saved = *or_throw(latest_training(folder_));
  Job other = make_job({}, {}, true, 12);
  const auto seed = resume_training(other.graph, other.optimizer, saved);
  ASSERT_FALSE(seed);
  EXPECT_EQ(seed.error().code, Errc::kMismatch);
  EXPECT_THAT(seed.error().message, HasSubstr("seed 11"));
  fs::resize_file(saved.path + "/optimizer.safetensors", fs::file_size(saved.path + "/optimizer.safetensors") - 8);
  Job same = make_job({}, {});
  const auto torn = resume_training(same.graph, same.optimizer, saved);
  ASSERT_FALSE(torn);
  EXPECT_EQ(torn.error().code, Errc::kBadData);
  EXPECT_THAT(torn.error().message, HasSubstr("optimizer.safetensors"));
  or_throw(write_file(saved.path + "/training.json", "{\"step\": -1}"));
  EXPECT_FALSE(latest_training(folder_));
}

/// Cannot say where it stands.
class Mute {
 public:
  explicit Mute(const int&) {}
  std::optional<TwoBatch> next() { return std::nullopt; }
};

TEST_F(Resume, NamesTheSourceThatCannotSayWhereItStands) {
  Job job = make_job({}, {});
  const auto mute = or_throw(job.graph.source<Mute>({.name = "mute"}, 0));
  const auto state = mute.state(10s);
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().code, Errc::kInvalidArgument);
  EXPECT_THAT(state.error().message, HasSubstr("mute"));
  EXPECT_FALSE(save_training(job.graph, job.optimizer, {.folder = folder_}));
  EXPECT_TRUE(!fs::exists(folder_) || fs::is_empty(folder_));
}

}  // namespace
}  // namespace troupe::test
