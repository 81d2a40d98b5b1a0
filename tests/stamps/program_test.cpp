// The program as a user runs it: exit codes, what it leaves behind.
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pictures.hpp"

extern char** environ;

namespace stamps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using test::Folder;

/// A run of the program with its output on a pipe.
class Program {
 public:
  explicit Program(std::vector<std::string> words) {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    output_ = ends[0];
    std::string program = STAMPS_PROGRAM;
    std::vector<char*> argv = {program.data()};
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    EXPECT_EQ(posix_spawn(&child_, STAMPS_PROGRAM, &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
  }
  ~Program() { close(output_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Reads until `words` have come; false at the end of the output or after a minute.
  bool says(const std::string& words) {
    while (said_.find(words) == std::string::npos) {
      pollfd ready{output_, POLLIN, 0};
      char buffer[4096];
      if (poll(&ready, 1, 60000) != 1) return false;
      const auto got = read(output_, buffer, sizeof buffer);
      if (got <= 0) return false;
      said_.append(buffer, static_cast<std::size_t>(got));
    }
    return true;
  }
  void interrupt() const { kill(child_, SIGINT); }
  /// The exit code; -1 when it ended otherwise.
  int ends() {
    (void)says("\x01");  // never said: reads to the end
    int status = 0;
    if (waitpid(child_, &status, 0) != child_ || !WIFEXITED(status)) return -1;
    return WEXITSTATUS(status);
  }
  [[nodiscard]] const std::string& said() const { return said_; }

 private:
  pid_t child_ = -1;
  int output_ = -1;
  std::string said_;
};

std::string content_of(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

std::vector<std::string> small_run(const Folder& data, const std::string& out, const std::string& steps) {
  return {"--data", data.path(), "--out", out, "--steps", steps, "--batch", "8", "--width", "24", "--layers", "1", "--log_every", "1"};
}

TEST(StampsProgram, RunsToTheEnd) {
  Folder data;
  Folder out;
  test::write_stamps(data, 60);
  Program program(small_run(data, out.path(), "3"));
  EXPECT_EQ(program.ends(), 0) << program.said();
  EXPECT_THAT(program.said(), ::testing::AllOf(HasSubstr("held-out loss"), HasSubstr("unseen"), HasSubstr("peak MiB")));
  EXPECT_THAT(out.names(), ElementsAre("loss.svg", "report.html", "results.json"));
}

/// From "losses" on: the curve and what follows of results.json.
std::string losses_in(const std::string& results) {
  const std::size_t begin = results.find("\"losses\"");
  return results.substr(begin, results.find(']', begin) - begin);
}

// A run of 6 steps against one that was killed after step 4, in the middle of saving step 5, and resumed: the same bits.
TEST(StampsProgram, AResumedRunHasTheLossesOfOneThatWasNeverStopped) {
  Folder data;
  Folder whole;
  Folder cut;
  test::write_stamps(data, 60);
  const auto with = [](std::vector<std::string> options, const std::vector<std::string>& more) {
    options.insert(options.end(), more.begin(), more.end());
    return options;
  };
  Program straight(with(small_run(data, whole.path(), "6"), {"--save_every", "0"}));
  ASSERT_EQ(straight.ends(), 0) << straight.said();
  Program first(with(small_run(data, cut.path(), "6"), {"--save_every", "2"}));
  ASSERT_EQ(first.ends(), 0) << first.said();
  std::filesystem::remove_all(cut.path() + "/checkpoints/step-00000006");
  std::filesystem::create_directories(cut.path() + "/checkpoints/step-00000005.part");
  Program second(with(small_run(data, cut.path(), "6"), {"--save_every", "2", "--resume"}));
  ASSERT_EQ(second.ends(), 0) << second.said();
  EXPECT_THAT(second.said(), HasSubstr("resumed from"));
  EXPECT_THAT(second.said(), ::testing::Not(HasSubstr("step    4/")));
  EXPECT_EQ(losses_in(content_of(cut / "results.json")), losses_in(content_of(whole / "results.json")));
}

TEST(StampsProgram, InterruptFinishesTheStepWritesAndLeavesWith130) {
  Folder data;
  Folder out;
  test::write_stamps(data, 60);
  Program program(small_run(data, out.path(), "1000000"));
  ASSERT_TRUE(program.says("step    2/")) << program.said();
  program.interrupt();
  EXPECT_EQ(program.ends(), 130) << program.said();
  EXPECT_THAT(out.names(), ElementsAre("checkpoints", "loss.svg", "report.html", "results.json"));
  EXPECT_THAT(content_of(out / "results.json"), ::testing::AllOf(HasSubstr("\"stopped\": true"), HasSubstr("\"held_out\": null")));
}

TEST(StampsProgram, BrokenPictureEndsItWithItsNameAndNoFile) {
  Folder data;
  Folder out;
  test::write_stamps(data, 60);
  for (int i = 10; i < 60; ++i) test::write(data / (std::to_string(i) + ".png"), "");
  Program program(small_run(data, out.path(), "20"));
  EXPECT_EQ(program.ends(), 1);
  EXPECT_THAT(program.said(), ::testing::AllOf(HasSubstr("BadData"), HasSubstr(".png"), HasSubstr("got 0 bytes")));
  EXPECT_TRUE(out.names().empty());
}

TEST(StampsProgram, WrongUseLeavesWithTwo) {
  EXPECT_EQ(Program({"--steps", "none"}).ends(), 2);
  EXPECT_EQ(Program({"--nothing"}).ends(), 2);
  EXPECT_EQ(Program({"--help"}).ends(), 0);
  Program program({"--data", "/nowhere"});
  EXPECT_EQ(program.ends(), 1);
  EXPECT_THAT(program.said(), HasSubstr("/nowhere"));
}

}  // namespace
}  // namespace stamps
