#include "process/lines.hpp"

#include <csignal>
#include <stdexcept>

#include "actors/process_fixture.hpp"

namespace troupe::detail {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::StartsWith;

TEST_F(ProcessTest, ForwardsBothStreamsByLine) {
  constexpr int kLines = 500;
  const auto process = start({"interleave", std::to_string(kLines)});
  const auto info = end_of(process);
  const std::string prefix = text("[vision.2 ", process->pid(), "] ");
  ASSERT_EQ(lines(LogLevel::kInfo).size(), kLines);
  ASSERT_EQ(lines(LogLevel::kWarning).size(), kLines);
  for (int i = 0; i < kLines; ++i) {
    EXPECT_EQ(lines(LogLevel::kInfo)[static_cast<std::size_t>(i)], text(prefix, "out ", i));
    EXPECT_EQ(lines(LogLevel::kWarning)[static_cast<std::size_t>(i)], text(prefix, "err ", i));
  }
  EXPECT_EQ(info.last_errors, "err 492\nerr 493\nerr 494\nerr 495\nerr 496\nerr 497\nerr 498\nerr 499");
}

TEST_F(ProcessTest, EscapesWhatIsNoTextAndKeepsALineWithoutEnd) {
  const auto process = start({"garbage"});
  end_of(process);
  std::vector<std::string> got;
  for (const auto& line : lines()) got.push_back(line.substr(line.find("] ") + 2));
  EXPECT_THAT(got, ElementsAre("\\x00\\x1b[31mred\\xff", "中 ok \\xe4\\xb8", "10%", "20%", "", "last without end"));
}

TEST_F(ProcessTest, CutsALineOfAMebibyteAndGoesOn) {
  end_of(start({"long_line", "1048576"}));
  ASSERT_EQ(lines().size(), 2U);
  EXPECT_THAT(lines()[0], EndsWith(text("xx [cut: ", 1048576 - LineSplitter::kMaxLine, " more bytes in this line]")));
  EXPECT_LT(lines()[0].size(), LineSplitter::kMaxLine + 100);
  EXPECT_THAT(lines()[1], EndsWith("] after"));
}

TEST_F(ProcessTest, KeepsAllThatWasWrittenBeforeTheEnd) {
  constexpr std::size_t kLines = 60000;
  EXPECT_EQ(end_of(start({"burst", std::to_string(kLines)})).code, 0);
  const auto got = lines();
  ASSERT_EQ(got.size(), kLines);
  EXPECT_THAT(got.back(), EndsWith("] line 59999"));
}

/// With a sink that is slower than whoever writes.
class SlowLogTest : public ProcessTest {
 protected:
  SlowLogTest() {
    options.log = std::make_shared<Log>([log = options.log](LogLevel level, std::string_view line) {
      log->write(level, line);
      std::this_thread::sleep_for(20us);
    }, LogLevel::kDebug);
    launcher = or_throw(Launcher::create(options));
  }
};

TEST_F(SlowLogTest, AFloodHoldsUpNoOther) {
  const auto one = start({"flood"}), two = start({"flood"});
  ASSERT_TRUE(eventually([&] { return saw("yyy") && saw("zzz"); }));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(start({"exit", "0"})->wait(system_clock()->after(2s)));
  one->terminate(20s);
  EXPECT_EQ(end_of(one).description, "killed by SIGTERM");
  EXPECT_TRUE(launcher->stop(soon()));
}

// what escaped the group keeps the pipe open; the process it escaped from has ended all the same
TEST_F(SlowLogTest, ADaemonThatKeepsWritingDoesNotHoldUpTheEnd) {
  const auto process = start({"with_daemon"});
  const auto info = end_of(process);
  ASSERT_THAT(info.last_errors, StartsWith("daemon "));
  ::kill(std::stoi(info.last_errors.substr(7)), SIGKILL);
  EXPECT_EQ(info.code, 0);
}

// EMB: a sink that throws loses its lines, and nothing else happens
TEST_F(ProcessTest, ASinkMayThrow) {
  options.log = std::make_shared<Log>([](LogLevel, std::string_view) { throw std::runtime_error("disk full"); }, LogLevel::kDebug);
  launcher = or_throw(Launcher::create(options));
  EXPECT_THAT(end_of(start({"interleave", "3"})).last_errors, EndsWith("err 2"));
}

// one byte at a time gives the same lines as all at once
TEST(LineSplitter, DoesNotDependOnHowTheBytesArrive) {
  const std::string all = "a\r\nb\r\rc\n\nd \xf0\x9f\x98\x80\n\xc0\xaf \xed\xa0\x80 \xf4\x90\x80\x80\ne";
  std::vector<std::string> whole, bytes;
  LineSplitter one, other;
  one.feed(all, [&](std::string line) { whole.push_back(std::move(line)); });
  one.finish([&](std::string line) { whole.push_back(std::move(line)); });
  for (const char c : all) other.feed({&c, 1}, [&](std::string line) { bytes.push_back(std::move(line)); });
  other.finish([&](std::string line) { bytes.push_back(std::move(line)); });
  EXPECT_EQ(whole, bytes);
  EXPECT_THAT(whole, ElementsAre("a", "b", "c", "", "d 😀", "\\xc0\\xaf \\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80", "e"));
}

}  // namespace
}  // namespace troupe::detail
