// The program as a user runs it: exit codes, one JSON line, what a bad input is told, and a resumed run against one that was never stopped.
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

#include <troupe/train/safetensors.hpp>

#include "measure.hpp"

namespace qwen_vl {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

struct Outcome {
  int code = -1;
  std::string out;   ///< stdout and stderr.
};

Outcome run(const std::string& arguments) {
  Outcome out;
  FILE* pipe = ::popen((std::string(QWEN_VL_PROGRAM) + " " + arguments + " 2>&1").c_str(), "r");
  std::array<char, 4096> buffer{};
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) out.out.append(buffer.data(), got);
  const int status = ::pclose(pipe);
  out.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return out;
}

nlohmann::json last_line(const std::string& out) {
  const std::string trimmed = out.substr(0, out.find_last_not_of('\n') + 1);
  return nlohmann::json::parse(trimmed.substr(trimmed.find_last_of('\n') + 1), nullptr, false);
}

class Commands : public ::testing::Test {
 protected:
  Commands() : folder_(fs::temp_directory_path() / ("qwen-commands-" + std::to_string(::getpid()) + ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::create_directories(folder_);
  }
  ~Commands() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string at(const std::string& name) const { return (folder_ / name).string(); }
  /// Four conversations, two with a picture.
  std::string data() const {
    fs::copy(PICTURES_GOLDEN "/gradient.png", folder_ / "a.png", fs::copy_options::overwrite_existing);
    std::ofstream file(folder_ / "d.jsonl");
    for (const char* word : {"red", "blue"}) {
      file << R"({"image": "a.png", "conversations": [{"from": "human", "value": "<image>\nWhich?"}, {"from": "gpt", "value": ")" << word << R"( one"}]})" << "\n";
      file << R"({"conversations": [{"from": "human", "value": "Say )" << word << R"("}, {"from": "gpt", "value": ")" << word << R"("}]})" << "\n";
    }
    return at("d.jsonl");
  }
  [[nodiscard]] std::string small() const { return "train --data " + data() + " --batch 3 --width 32 --layers 2 --vocabulary 340 --max_pixels 4000 --log_every 100 --shown 1 "; }

  fs::path folder_;
};

const std::string kCase = QWEN_VL_GOLDEN "/one_image";

TEST_F(Commands, VerifyWritesWhatTransformersSays) {
  const auto got = run("verify --model " + kCase + " --batch " + kCase + "/batch.safetensors --vision sp=2 --language tp=2 --dtype float64 --out " + at("o.safetensors"));
  ASSERT_EQ(got.code, 0) << got.out;
  const auto line = last_line(got.out);
  ASSERT_TRUE(line.is_object()) << got.out;
  auto expected = troupe::or_throw(troupe::read_safetensors(kCase + "/expected.safetensors"));
  expected.erase("logits_valid");
  EXPECT_NEAR(line.at("loss").get<double>(), expected.at("loss").item<double>(), 1e-12);
  const auto [error, name] = worst(troupe::or_throw(troupe::read_safetensors(at("o.safetensors"))), expected);
  EXPECT_LT(error, 1e-9) << name;
}

TEST_F(Commands, LowerPrecisionsStayNear) {
  auto expected = troupe::or_throw(troupe::read_safetensors(kCase + "/expected.safetensors"));
  for (const auto& [dtype, tolerance] : {std::pair{"float32", 1e-5}, std::pair{"bfloat16", 5e-2}}) {
    const auto got = run("verify --steps 1 --model " + kCase + " --batch " + kCase + "/batch.safetensors --language tp=2 --dtype " + dtype + " --out " + at("o.safetensors"));
    ASSERT_EQ(got.code, 0) << got.out;
    EXPECT_NEAR(last_line(got.out).at("loss").get<double>(), expected.at("loss").item<double>(), tolerance * expected.at("loss").item<double>()) << dtype;
  }
}

TEST_F(Commands, BadInputIsCode2AndNamed) {
  std::ofstream(at("cut.safetensors")) << "short";
  fs::create_directories(at("empty"));
  const std::string batch = " --batch " + kCase + "/batch.safetensors --out " + at("o");
  for (const auto& [arguments, expected] : std::vector<std::pair<std::string, std::string>>{
           {"", "subcommand is required"},
           {"verify --model x", "--batch is required"},
           {"verify --model " + at("empty") + batch, "config.json"},
           {"verify --model " + kCase + " --batch " + at("cut.safetensors") + " --out " + at("o"), "cut.safetensors"},
           {"verify --model " + kCase + batch + " --vision tp=2", "'tp'"},
           {"verify --model " + kCase + batch + " --language tp=x", "tp=x"},
           {"verify --model " + kCase + batch + " --dtype float16", "float16"},
           {"train --steps x", "--steps: can't read 'x'"},
           {"train --steps 1.5", "--steps must be a whole number"},
           {"train --data " + at("no.jsonl"), "no.jsonl"},
           {"train --config " + at("no.toml"), "no.toml"},
           {"generate --model " + kCase + " --prompt hi", "tokenizer"},
       }) {
    const auto got = run(arguments);
    EXPECT_EQ(got.code, 2) << arguments << "\n" << got.out;
    EXPECT_THAT(got.out, HasSubstr(expected)) << arguments;
  }
  EXPECT_EQ(run("--help").code, 0);
  EXPECT_EQ(run("train --help").code, 0);
}

TEST_F(Commands, AMissingPictureIsNamedWithFileAndLine) {
  const std::string file = data();
  fs::remove(at("a.png"));
  const auto got = run("train --data " + file + " --out " + at("out"));
  EXPECT_EQ(got.code, 2) << got.out;
  EXPECT_THAT(got.out, ::testing::AllOf(HasSubstr("d.jsonl:1"), HasSubstr("a.png")));
}

TEST_F(Commands, AResumedRunHasTheBitsOfOneThatWasNeverStopped) {
  const auto whole = run(small() + "--steps 6 --save_every 0 --out " + at("whole"));
  ASSERT_EQ(whole.code, 0) << whole.out;
  // the schedule is that of all six steps, so the run is cut by its budget of saves: 3 steps, then the rest
  const auto first = run(small() + "--steps 6 --save_every 3 --out " + at("cut"));
  ASSERT_EQ(first.code, 0) << first.out;
  fs::remove_all(at("cut") + "/checkpoints/step-00000006");   // as if killed after step 3
  fs::create_directories(at("cut") + "/checkpoints/step-00000005.part");
  const auto rest = run(small() + "--steps 6 --save_every 3 --resume --out " + at("cut"));
  ASSERT_EQ(rest.code, 0) << rest.out;
  EXPECT_THAT(rest.out, HasSubstr("resumed from"));
  const auto a = troupe::or_throw(troupe::read_safetensors(at("whole") + "/model/model.safetensors"));
  const auto b = troupe::or_throw(troupe::read_safetensors(at("cut") + "/model/model.safetensors"));
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, tensor] : a) EXPECT_TRUE(at::equal(tensor, b.at(name))) << name;
  std::ifstream results(at("cut") + "/results.json");
  EXPECT_EQ(nlohmann::json::parse(results).at("losses").size(), 6U);
}

TEST_F(Commands, TheTrainedModelAnswersAndIsEvaluated) {
  const auto trained = run(small() + "--steps 4 --out " + at("out"));
  ASSERT_EQ(trained.code, 0) << trained.out;
  const auto said = run("generate --model " + at("out/model") + " --image " + at("a.png") + " --prompt Which? --max-tokens 5 --language tp=2 --vision sp=2");
  ASSERT_EQ(said.code, 0) << said.out;
  EXPECT_LE(last_line(said.out).at("tokens").get<int>(), 5);
  const auto loss = run("eval --model " + at("out/model") + " --data " + at("d.jsonl") + " --batch 3");
  ASSERT_EQ(loss.code, 0) << loss.out;
  EXPECT_EQ(last_line(loss.out).at("conversations").get<int>(), 4);
  EXPECT_GT(last_line(loss.out).at("loss").get<double>(), 0);
}

}  // namespace
}  // namespace qwen_vl
