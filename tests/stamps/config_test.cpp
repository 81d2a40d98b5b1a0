// Unknown keys, wrong types and impossible values name file, key, and what is accepted (issue 3, "Bad input").
#include "config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pictures.hpp"

namespace stamps {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using test::Folder;

troupe::Result<Parsed> parse_words(std::vector<std::string> words) {
  std::string program = "stamps";
  std::vector<char*> argv = {program.data()};
  for (auto& word : words) argv.push_back(word.data());
  return parse(static_cast<int>(argv.size()), argv.data());
}

void expect_refused(const std::vector<std::string>& words, const ::testing::Matcher<const std::string&>& message) {
  const auto parsed = parse_words(words);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, troupe::Errc::kInvalidArgument);
  EXPECT_THAT(parsed.error().message, message);
}

TEST(Config, FlagsWinOverTheFile) {
  Folder folder;
  test::write(folder / "c.toml", "steps = 30\nlearning_rate = 1\nvision = \"sp=4\"\n");
  const auto parsed = parse_words({"--config", folder / "c.toml", "--steps", "40", "--out", "here"});
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->exit_code, -1);
  EXPECT_EQ(parsed->config.steps, 40);
  EXPECT_EQ(parsed->config.learning_rate, 1.0);
  EXPECT_EQ(parsed->config.vision, "sp=4");
  EXPECT_EQ(parsed->config.out, "here");
}

TEST(Config, UnknownKeyNamesFileKeyAndWhatIsAccepted) {
  Folder folder;
  test::write(folder / "c.toml", "step = 30\n");
  expect_refused({"--config", folder / "c.toml"}, AllOf(HasSubstr(folder / "c.toml"), HasSubstr("'step'"), HasSubstr("batch"), HasSubstr("steps")));
}

TEST(Config, WrongTypeNamesLineAndType) {
  Folder folder;
  test::write(folder / "c.toml", "seed = 3\nsteps = \"many\"\n");
  expect_refused({"--config", folder / "c.toml"}, AllOf(HasSubstr("line 2"), HasSubstr("'steps'"), HasSubstr("whole number")));
  test::write(folder / "c.toml", "steps = 3.5\n");
  expect_refused({"--config", folder / "c.toml"}, HasSubstr("whole number"));
  test::write(folder / "c.toml", "vision = 2\n");
  expect_refused({"--config", folder / "c.toml"}, HasSubstr("a string"));
}

TEST(Config, BrokenTomlNamesTheLine) {
  Folder folder;
  test::write(folder / "c.toml", "seed = 3\nsteps = = 4\n");
  expect_refused({"--config", folder / "c.toml"}, AllOf(HasSubstr(folder / "c.toml"), HasSubstr("line 2")));
}

TEST(Config, MissingFileNamesIt) { expect_refused({"--config", "/nowhere/c.toml"}, HasSubstr("/nowhere/c.toml")); }

TEST(Config, FlagsAreCheckedToo) {
  expect_refused({"--steps", "many"}, HasSubstr("--steps"));
  expect_refused({"--steps", "0"}, HasSubstr("steps must be"));
  expect_refused({"--learning_rate", "-1"}, HasSubstr("learning_rate"));
  expect_refused({"--learning_rate", "nan"}, HasSubstr("learning_rate"));
  expect_refused({"--batch", "99999999999999999999"}, HasSubstr("--batch"));
  expect_refused({"--heads", "7"}, AllOf(HasSubstr("192"), HasSubstr("7")));
}

TEST(Config, MeshesAreChecked) {
  expect_refused({"--vision", "sp:2"}, AllOf(HasSubstr("vision"), HasSubstr("sp:2")));
  expect_refused({"--vision", "dp=1,tp=2"}, AllOf(HasSubstr("'tp'"), HasSubstr("dp, sp")));
  expect_refused({"--language", "sp=2"}, AllOf(HasSubstr("'sp'"), HasSubstr("dp, tp")));
}

TEST(Config, HelpLeavesWithZero) {
  ::testing::internal::CaptureStdout();
  const auto parsed = parse_words({"--help"});
  const std::string help = ::testing::internal::GetCapturedStdout();
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->exit_code, 0);
  EXPECT_THAT(help, AllOf(HasSubstr("--steps"), HasSubstr("--vision"), HasSubstr("--config")));
}

TEST(Config, UnknownFlagLeavesWithTwo) {
  ::testing::internal::CaptureStderr();
  const auto parsed = parse_words({"--stepz", "3"});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("--stepz"));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->exit_code, 2);
}

}  // namespace
}  // namespace stamps
