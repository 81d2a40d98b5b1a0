#include <atomic>
#include <csignal>

#include <sys/wait.h>

#include "actors/process_fixture.hpp"

namespace troupe::detail {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST_F(ProcessTest, SaysHowAProcessEnded) {
  const auto ok = end_of(start({"exit", "0"}));
  EXPECT_EQ(ok.code, 0);
  EXPECT_EQ(ok.signal, std::nullopt);
  EXPECT_EQ(ok.description, "exit code 0");
  EXPECT_FALSE(ok.requested);
  EXPECT_EQ(end_of(start({"exit", "3"})).description, "exit code 3");
  const auto killed = end_of(start({"die", std::to_string(SIGKILL)}));
  EXPECT_EQ(killed.code, std::nullopt);
  EXPECT_EQ(killed.signal, SIGKILL);
  EXPECT_EQ(killed.description, "killed by SIGKILL");
  EXPECT_THAT(end_of(start({"die", std::to_string(SIGTERM)})).description, StartsWith("killed by SIGTERM"));
}

// SUP-1, SUP-7: once, on the executor, never inside on_exit()
TEST_F(ProcessTest, CallsBackOnceOnTheExecutor) {
  std::atomic<int> calls{0};
  std::atomic<bool> elsewhere{false};
  std::atomic<std::thread::id> executor_thread{};
  executor->post([&] { executor_thread = std::this_thread::get_id(); });
  const auto count = [&](const ExitInfo& info) {
    if (std::this_thread::get_id() != executor_thread.load() || info.code != 4) elsewhere = true;
    ++calls;
  };
  const auto process = start({"exit", "4"});
  process->on_exit(count);
  end_of(process);
  process->on_exit(count);
  process->kill();
  EXPECT_TRUE(eventually([&] { return calls == 2; }));
  launcher.reset();
  executor->stop();
  EXPECT_EQ(calls, 2);
  EXPECT_FALSE(elsewhere);
}

// EMB: 100 cycles; nothing stays, and no signal disposition changes
TEST_F(ProcessTest, LeavesNothingAfterStop) {
  ASSERT_TRUE(launcher->stop(soon()));
  launcher.reset();
  std::vector<struct sigaction> before(SIGRTMAX + 1), after(SIGRTMAX + 1);
  const auto dispositions = [](std::vector<struct sigaction>& out) {
    for (int signal = 1; signal <= SIGRTMAX; ++signal) ::sigaction(signal, nullptr, &out[static_cast<std::size_t>(signal)]);
  };
  dispositions(before);
  const std::size_t fds = open_descriptors(), tasks = threads();
  std::vector<std::shared_ptr<Process>> kept;   // a handle holds no descriptor
  for (int cycle = 0; cycle < 100; ++cycle) {
    const auto one = or_throw(Launcher::create(options)), two = or_throw(Launcher::create(options));
    kept.push_back(or_throw(one->start(spec({"sleep"}))));
    kept.push_back(or_throw(two->start(spec({"exit", "1"}))));
    if (cycle % 2 == 0) kept.push_back(or_throw(two->start(spec({"with_child", "and stay"}))));
    ASSERT_TRUE(one->stop(soon()));
    ASSERT_TRUE(two->stop(soon()));
    ASSERT_TRUE(one->stop(soon())) << "idempotent";
    for (const auto& process : kept) ASSERT_TRUE(process->has_ended());
  }
  expect_nothing_left(fds, tasks);
  dispositions(after);
  for (std::size_t signal = 1; signal < before.size(); ++signal) EXPECT_EQ(before[signal].sa_handler, after[signal].sa_handler) << signal;
}

// a zombie passes for alive with UCX's keepalive (notes/transport.md 1.3): it must not stay for more than a moment
TEST_F(ProcessTest, ReapsAtOnceWithoutBeingAsked) {
  const pid_t pid = start({"exit", "0"})->pid();
  EXPECT_TRUE(eventually([&] { return state_of(pid) == '\0'; }, 2s));
}

// SUP-9, X1: the host is killed so that it can do nothing, and its worker goes too
TEST_F(ProcessTest, WorkersDieWithAKilledHost) {
  const auto host = start({"host"});
  ASSERT_TRUE(eventually([&] { return saw("worker "); }));
  const pid_t worker = last_number();
  ASSERT_FALSE(is_gone(worker));
  ASSERT_EQ(::getpgid(worker), worker) << "not in the host's group, which is ended with the host";
  ::kill(host->pid(), SIGKILL);
  EXPECT_EQ(end_of(host).signal, SIGKILL);
  EXPECT_TRUE(eventually([&] { return is_gone(worker); }, 2s));
}

// SUP-9: the death signal follows the thread that spawned, not the one that asked, which may end
TEST_F(ProcessTest, AWorkerOutlivesTheThreadThatAskedForIt) {
  std::shared_ptr<Process> process;
  std::thread([&] {
    process = start({"worker", std::to_string(::getpid())});
    EXPECT_TRUE(eventually([&] { return saw("worker "); })) << "it has asked for the signal";
  }).join();
  EXPECT_EQ(process->wait(system_clock()->after(200ms)).error().code, Errc::kTimeout);
}

// SUP-9: the race; the parent has died before the worker could ask to die with it
TEST_F(ProcessTest, AWorkerOfAnotherParentRefuses) {
  const auto process = start({"worker", std::to_string(::getpid() + 1)});
  EXPECT_EQ(end_of(process).code, 5);
  EXPECT_THAT(lines().at(0), HasSubstr("PeerLost"));
  EXPECT_THAT(lines().at(0), HasSubstr(text("the host process ", ::getpid() + 1, " is not the parent of this worker, ", ::getpid(), " is")));
}

// X1: what a worker started and left behind in its group does not stay
TEST_F(ProcessTest, EndsWhatAProcessLeftBehind) {
  const auto process = start({"with_child"});
  EXPECT_EQ(end_of(process).code, 0);
  EXPECT_TRUE(eventually([&] { return is_gone(last_number()); }, 2s));
}

// X7
TEST_F(ProcessTest, KillsAfterTheGrace) {
  const auto process = start({"ignore_term"});
  ASSERT_TRUE(eventually([&] { return saw("ignoring"); }));
  const auto begun = std::chrono::steady_clock::now();
  process->terminate(200ms);
  process->terminate(20s);   // does not put it off
  EXPECT_EQ(process->wait(system_clock()->after(100ms)).error().code, Errc::kTimeout);
  const auto info = end_of(process);
  const auto took = std::chrono::steady_clock::now() - begun;
  EXPECT_EQ(info.signal, SIGKILL);
  EXPECT_TRUE(info.requested);
  EXPECT_GE(took, 200ms);
  EXPECT_LT(took, 5s);
}

TEST_F(ProcessTest, TerminateIsGentleFirst) {
  const auto process = start({"sleep"});
  process->terminate(20s);
  EXPECT_EQ(end_of(process).description, "killed by SIGTERM");
}

// SUP-8: a frozen child does not hold up the end
TEST_F(ProcessTest, StopEndsAFrozenChild) {
  const auto process = start({"sleep"});
  ::kill(process->pid(), SIGSTOP);
  ASSERT_TRUE(eventually([&] { return state_of(process->pid()) == 'T'; }));
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_TRUE(launcher->stop(system_clock()->after(1s)));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 5s);
  EXPECT_EQ(end_of(process).signal, SIGKILL);
  EXPECT_EQ(state_of(process->pid()), '\0');
}

TEST_F(ProcessTest, StopRefusesNewStarts) {
  ASSERT_TRUE(launcher->stop(Deadline::at(TimePoint{}))) << "a deadline that has passed leaves time to clear up";
  EXPECT_EQ(launcher->start(spec({"exit", "0"})).error().code, Errc::kClosed);
}

// SUP-8: threads that start while another stops; each start gives a process that ends, or kClosed
TEST_F(ProcessTest, StartsAndStopsAtTheSameTime) {
  for (int round = 0; round < 20; ++round) {
    const auto shared = std::shared_ptr<Launcher>(or_throw(Launcher::create(options)));
    std::atomic<int> started{0};
    std::vector<std::thread> callers;
    for (int i = 0; i < 3; ++i) {
      callers.emplace_back([&] {
        for (;;) {
          const auto process = shared->start(spec({"sleep"}));
          if (!process) {
            EXPECT_EQ(process.error().code, Errc::kClosed) << process.error().describe();
            return;
          }
          ++started;
        }
      });
    }
    EXPECT_TRUE(eventually([&] { return started >= 3; }));
    EXPECT_TRUE(shared->stop(soon()));
    for (auto& caller : callers) caller.join();
    EXPECT_EQ(children(), 0U);
  }
}

// SUP-8: user code (a sink) that does not return is listed and left, and ends by itself later
TEST_F(ProcessTest, StopLeavesASinkThatIsStuck) {
  const std::size_t tasks = threads();
  struct Gate {
    std::atomic<bool> entered{false}, open{false};
  };
  const auto gate = std::make_shared<Gate>();
  const auto log = std::make_shared<Log>([gate](LogLevel, std::string_view) {
    gate->entered = true;
    while (!gate->open) std::this_thread::sleep_for(1ms);
  }, LogLevel::kDebug);
  auto stuck = or_throw(Launcher::create({system_clock(), executor, log}));
  const auto process = or_throw(stuck->start(spec({"ignore_term"})));
  ASSERT_TRUE(eventually([&] { return gate->entered.load(); }));
  const auto begun = std::chrono::steady_clock::now();
  const auto ended = stuck->stop(system_clock()->after(300ms));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 5s);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, Errc::kTimeout);
  EXPECT_THAT(ended.error().message, HasSubstr(text("process vision.2 (pid ", process->pid(), ")")));
  EXPECT_THAT(ended.error().message, HasSubstr("sink"));
  stuck.reset();
  gate->open = true;
  EXPECT_EQ(end_of(process).signal, SIGKILL);
  EXPECT_TRUE(eventually([&] { return threads() == tasks; }));
}

// EMB: a child that the host itself started is the host's to wait for
TEST_F(ProcessTest, LeavesTheHostsOwnChildAlone) {
  const pid_t own = ::fork();
  if (own == 0) ::_exit(7);
  ASSERT_TRUE(eventually([&] { return state_of(own) == 'Z'; }));
  for (int i = 0; i < 3; ++i) end_of(start({"exit", "0"}));
  ASSERT_TRUE(launcher->stop(soon()));
  int status = 0;
  ASSERT_EQ(::waitpid(own, &status, WNOHANG), own);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

// EMB: and a host that takes every status gets callbacks that say so
TEST_F(ProcessTest, AHostThatTakesEveryStatusIsTold) {
  EXPECT_EQ(end_of(start({"ignore_children"})).code, 0);
  ASSERT_EQ(lines().size(), 20U);
  for (const auto& line : lines()) EXPECT_THAT(line, HasSubstr("its status is unknown because the host"));
}

}  // namespace
}  // namespace troupe::detail
