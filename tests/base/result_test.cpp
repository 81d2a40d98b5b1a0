#include <gtest/gtest.h>

#include <troupe/base/log.hpp>
#include <troupe/base/result.hpp>
#include <troupe/base/units.hpp>

namespace troupe {
namespace {

using namespace troupe::literals;

TEST(Errors, DescribeWhatWhereAndWhy) {
  const Error first{.code = Errc::kOutOfMemory, .message = "no room", .origin = {.pool = "vision", .rank = 2, .incarnation = 1}, .maybe_executed = true};
  const Error second = caused_by(first, Errc::kPeerLost, "a peer left", {.pool = "vision", .rank = 0});
  EXPECT_EQ(second.describe(),
            "PeerLost [pool vision, rank 0]: a peer left (may have been executed); caused by OutOfMemory [pool vision, rank 2, incarnation 1]: no room (may have been executed)");
}

TEST(Errors, PassThroughExceptionsUnchanged) {
  const auto caught = [](auto raise) {
    try {
      raise();
    } catch (...) {
      return error_from_current_exception();
    }
    return Error{};
  };
  const Error original{.code = Errc::kMismatch, .message = "3 is not 4"};
  EXPECT_EQ(caught([&] { throw Exception(original); }).code, Errc::kMismatch);
  EXPECT_EQ(caught([&] { (void)Result<int>(fail(original)).value(); }).message, "3 is not 4") << "a user's .value()";
  EXPECT_EQ(caught([] { throw std::runtime_error("text"); }).code, Errc::kUserException);
  EXPECT_EQ(caught([] { throw std::runtime_error("text\nException raised from somewhere"); }).message, "text");
  EXPECT_EQ(caught([] { throw std::bad_alloc(); }).code, Errc::kOutOfMemory);
  EXPECT_EQ(caught([] { throw 3; }).code, Errc::kUserException);
}

TEST(Errors, EveryCodeHasAName) {
  for (int code = static_cast<int>(Errc::kInvalidArgument); code <= static_cast<int>(Errc::kInternal); ++code) {
    EXPECT_NE(to_string(static_cast<Errc>(code)), "Unknown") << code;
  }
}

TEST(Units, AreForPeopleAndExact) {
  EXPECT_EQ(3_MiB, 3 * 1024 * 1024);
  EXPECT_EQ(format_bytes(1000), "1000 bytes");
  EXPECT_EQ(format_bytes(1536_MiB), "1.50 GiB (1610612736 bytes)");
  EXPECT_EQ(format_bytes(-2048), "-2.00 KiB (-2048 bytes)");
}

// EMB: the host's sink gets the lines; a fall-back is said once
TEST(Logs, GoToTheHostsSink) {
  std::vector<std::string> lines;
  Log log([&](LogLevel, std::string_view line) { lines.emplace_back(line); });
  log.info("not asked for");
  log.warn_once("path", "slow path");
  log.warn_once("path", "slow path");
  log.warn("again");
  EXPECT_EQ(lines, (std::vector<std::string>{"slow path", "again"}));
}

}  // namespace
}  // namespace troupe
