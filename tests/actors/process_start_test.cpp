#include <csignal>

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "actors/process_fixture.hpp"

namespace troupe::detail {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

TEST_F(ProcessTest, NamesAnExecutableItCannotStart) {
  const std::size_t fds = open_descriptors();
  const auto error_of = [&](const std::string& path) {
    return launcher->start({.name = "language.0", .executable = path}).error();
  };
  EXPECT_EQ(error_of("/nowhere/worker").code, Errc::kUnavailable);
  EXPECT_EQ(error_of("/nowhere/worker").message, "process language.0: no executable /nowhere/worker; give the full path of a program that exists on this host");
  EXPECT_THAT(error_of("/etc/passwd").message, HasSubstr("/etc/passwd cannot be executed: Permission denied; check its mode (chmod +x)"));
  EXPECT_THAT(error_of("/tmp").message, HasSubstr("it is a folder"));
  const auto path = std::filesystem::temp_directory_path() / text("troupe_no_program_", ::getpid());
  std::ofstream(path) << "no program";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  EXPECT_THAT(error_of(path).message, HasSubstr("is no program for this machine"));
  std::ofstream(path) << "#!/nowhere/shell\n";
  EXPECT_THAT(error_of(path).message, HasSubstr("names an interpreter or loader that does not exist"));
  EXPECT_EQ(error_of(path).code, Errc::kUnavailable);
  std::filesystem::remove(path);
  EXPECT_EQ(error_of("").code, Errc::kInvalidArgument);
  EXPECT_EQ(open_descriptors(), fds);
  EXPECT_EQ(children(), 0U);
}

TEST_F(ProcessTest, RefusesWhatNoChildCanHave) {
  const auto error_of = [&](auto change) {
    ProcessSpec broken = spec({"exit", "0"});
    change(broken);
    return launcher->start(std::move(broken)).error();
  };
  const std::vector<Error> errors = {
      error_of([](ProcessSpec& s) { s.environment["A=B"] = "1"; }), error_of([](ProcessSpec& s) { s.environment["A"] = std::string("1\0", 2); }),
      error_of([](ProcessSpec& s) { s.arguments.push_back(std::string("\0", 1)); }), error_of([](ProcessSpec& s) { s.cpus = {-1}; }),
      error_of([](ProcessSpec& s) { s.cpus = {0, 1023}; }), error_of([](ProcessSpec& s) { s.descriptors = {999999}; }),
      error_of([](ProcessSpec& s) { s.arguments.push_back(std::string(4 << 20, 'x')); }), error_of([](ProcessSpec& s) { s.start_timeout = 0s; })};
  for (const auto& error : errors) {
    EXPECT_EQ(error.code, Errc::kInvalidArgument) << error.describe();
    EXPECT_THAT(error.message, StartsWith("process vision.2: "));
  }
  EXPECT_THAT(errors[4].message, HasSubstr("CPUs 1023 do not exist or may not be used"));
  EXPECT_EQ(end_of(start({"exit", "0"})).code, 0) << "and the CPUs of the launcher are as before";
}

TEST_F(ProcessTest, SaysWhichLimitIsReached) {
  ProcessSpec limited = spec({"limited"});
  limited.environment = {{"ASAN_OPTIONS", "detect_leaks=0"}};   // it would start a process, too
  EXPECT_EQ(end_of(or_throw(launcher->start(std::move(limited)))).code, 0);
  ASSERT_EQ(lines().size(), 1U);
  EXPECT_THAT(lines()[0], HasSubstr("ResourcesBusy: process inner: starting /proc/self/exe: Resource temporarily unavailable; the limit of processes is reached (ulimit -u"));
}

TEST_F(ProcessTest, SaysThatDescriptorsAreUsedUp) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "UndefinedBehaviorSanitizer opens a pipe to look at an object, and takes one that it can't look at for broken";
#endif
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit few{64, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &few);
  std::vector<Descriptor> all;
  for (;;) {
    Descriptor one(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!one.is_open()) break;
    all.push_back(std::move(one));
  }
  const auto another = Launcher::create(options);
  EXPECT_EQ(another.error().code, Errc::kResourcesBusy) << another.error().describe();
  for (std::size_t room = 0; room < 12; ++room) {   // it fails in each place where it needs one, and starts with enough
    const auto started = launcher->start(spec({"exit", "0"}));
    if (!started) {
      EXPECT_EQ(started.error().code, Errc::kResourcesBusy) << started.error().describe();
      EXPECT_THAT(started.error().message, HasSubstr("ulimit -n"));
    } else {
      end_of(*started);
    }
    EXPECT_TRUE(started || room < 11) << started.error().describe();
    all.pop_back();
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(children(), 0U);
}

TEST_F(ProcessTest, StartsWithinItsTime) {
  int late = 0;
  for (Duration timeout = 1ns; timeout < 10ms; timeout = timeout * 3 / 2 + 1ns) {   // before, in and after the start itself
    ProcessSpec hurried = spec({"sleep"});
    hurried.start_timeout = timeout;
    const auto started = launcher->start(std::move(hurried));
    if (started) (*started)->kill();
    if (started) continue;
    EXPECT_EQ(started.error().code, Errc::kTimeout) << started.error().describe();
    EXPECT_THAT(started.error().message, HasSubstr(" did not start within "));
    ++late;
  }
  EXPECT_GT(late, 0);
  end_of(start({"exit", "0"}));
  EXPECT_TRUE(eventually([] { return children() == 0; })) << "what started too late is killed";
}

TEST_F(ProcessTest, ChangesTheEnvironmentOfTheChildOnly) {
  ::setenv("TROUPE_TEST_KEPT", "host", 1);
  ::setenv("TROUPE_TEST_CHANGED", "host", 1);
  ::setenv("TROUPE_TEST_REMOVED", "host", 1);
  ProcessSpec changed = spec({"environment", "TROUPE_TEST_KEPT", "TROUPE_TEST_CHANGED", "TROUPE_TEST_REMOVED", "TROUPE_TEST_NEW"});
  changed.environment = {{"TROUPE_TEST_CHANGED", "child"}, {"TROUPE_TEST_REMOVED", std::nullopt}, {"TROUPE_TEST_NEW", ""}};
  end_of(or_throw(launcher->start(std::move(changed))));
  EXPECT_THAT(lines(), ElementsAre(EndsWith("] TROUPE_TEST_KEPT=host"), EndsWith("] TROUPE_TEST_CHANGED=child"), EndsWith("] TROUPE_TEST_REMOVED unset"), EndsWith("] TROUPE_TEST_NEW=")));
  EXPECT_STREQ(std::getenv("TROUPE_TEST_CHANGED"), "host");
}

// EMB: of the host's descriptors, signals and CPUs a child has what it was given, and nothing else
TEST_F(ProcessTest, InheritsWhatItIsGivenAndNothingElse) {
  const Descriptor leaky(::open("/dev/null", O_RDONLY));   // without O_CLOEXEC, as hosts do
  const Descriptor given(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ::signal(SIGUSR1, SIG_IGN);
  sigset_t blocked, before;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGUSR2);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  cpu_set_t cpus;
  ::sched_getaffinity(0, sizeof cpus, &cpus);
  int last = 0;
  std::string all;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &cpus)) all += text(" ", last = cpu);
  }
  ProcessSpec one = spec({"inherited"});
  one.cpus = {last};
  one.descriptors = {given.get(), given.get()};
  end_of(or_throw(launcher->start(std::move(one))));
  EXPECT_THAT(lines(), ElementsAre(EndsWith("] open 0 1 2 3 4"), EndsWith(text("] cpus ", last)), EndsWith("] SigBlk 0"), EndsWith("] SigIgn 0"), EndsWith("leads its group")));
  end_of(start({"inherited"}));
  EXPECT_THAT(lines(), Contains(EndsWith("] cpus" + all))) << "the next one has all CPUs again";
  ::signal(SIGUSR1, SIG_DFL);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// the numbers of the host's descriptors and those in the child overlap in every way
TEST_F(ProcessTest, KeepsTheOrderOfInheritedDescriptors) {
  constexpr int kGiven = 6;
  std::vector<Descriptor> holes, given;
  for (int i = 0; i < kGiven; ++i) {
    holes.emplace_back(::memfd_create("hole", MFD_CLOEXEC));
    given.emplace_back(::memfd_create(text("given", i).c_str(), MFD_CLOEXEC));
  }
  holes.clear();
  ProcessSpec one = spec({"names", std::to_string(kGiven)});
  for (int i = kGiven - 1; i >= 0; --i) one.descriptors.push_back(given[static_cast<std::size_t>(i)].get());
  end_of(or_throw(launcher->start(std::move(one))));
  ASSERT_EQ(lines().size(), kGiven);
  for (int i = 0; i < kGiven; ++i) EXPECT_THAT(lines()[static_cast<std::size_t>(i)], HasSubstr(text("memfd:given", kGiven - 1 - i)));
}

TEST_F(ProcessTest, TalksOverAnInheritedSocket) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const Descriptor ours(ends[0]);
  Descriptor theirs(ends[1]);
  ProcessSpec talk = spec({"answer", std::to_string(kFirstDescriptor)});
  talk.descriptors = {theirs.get()};
  const auto process = or_throw(launcher->start(std::move(talk)));
  theirs.reset();
  ASSERT_EQ(::write(ours.get(), "hello", 5), 5);
  char buffer[8] = {};
  EXPECT_EQ(::read(ours.get(), buffer, sizeof buffer), 5);
  EXPECT_STREQ(buffer, "HELLO");
  EXPECT_EQ(::read(ours.get(), buffer, sizeof buffer), 0) << "the end of the child closes the socket: no other has it";
  EXPECT_EQ(end_of(process).code, 0);
}

// fork after start: an error in the child, not a hang, and its copy of the launcher ends nothing of the parent's
TEST_F(ProcessTest, AForkedHostIsToldAndDoesNoHarm) {
  const auto process = start({"sleep"});
  const pid_t forked = ::fork();
  if (forked == 0) {
    const auto started = launcher->start(spec({"exit", "0"}));
    const bool told = !started && started.error().code == Errc::kUnavailable && launcher->stop(soon());
    ::_exit(told ? 0 : 1);
  }
  int status = 0;
  ASSERT_TRUE(eventually([&] { return ::waitpid(forked, &status, WNOHANG) == forked; }));
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(process->has_ended());
}

}  // namespace
}  // namespace troupe::detail
