// UCX between processes: this program is its own peer. What the contracts can't show in one process: memory of another, its death.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iostream>

#include <gtest/gtest.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <troupe/transport/ucx.hpp>

#include "tensors.hpp"

extern char** environ;

namespace troupe::transport::test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kThere = 1, kBack = 2;
constexpr std::int64_t kLarge = 64 << 20;

std::string hex(std::span<const std::byte> bytes) {
  std::string out;
  char two[3];
  for (const std::byte byte : bytes) {
    std::snprintf(two, sizeof two, "%02x", std::to_integer<unsigned>(byte));
    out += two;
  }
  return out;
}

std::vector<std::byte> unhex(const std::string& text) {
  std::vector<std::byte> out;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) out.push_back(static_cast<std::byte>(std::stoi(text.substr(i, 2), nullptr, 16)));
  return out;
}

/// A process that speaks lines over its stdin and stdout.
class Child {
 public:
  explicit Child(const std::string& role) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    std::string self = "/proc/self/exe", mode = "--peer=" + role;
    char* arguments[] = {self.data(), mode.data(), nullptr};
    if (posix_spawn(&pid_, self.c_str(), &actions, nullptr, arguments, environ) != 0) throw std::runtime_error("posix_spawn");
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    to_ = in[1];
    from_ = fdopen(out[0], "r");
  }
  ~Child() {
    end(SIGKILL);
    close(to_);
    fclose(from_);
  }
  void say(const std::string& line) { (void)!write(to_, (line + "\n").data(), line.size() + 1); }
  std::string hear() {
    char line[8192] = {};
    if (fgets(line, sizeof line, from_) == nullptr) throw std::runtime_error("the peer has ended");
    line[std::strcspn(line, "\n")] = 0;
    return line;
  }
  void signal(int number) { kill(pid_, number); }
  void end(int number) {
    if (pid_ <= 0) return;
    kill(pid_, number);
    waitpid(pid_, nullptr, 0);   // a zombie would pass UCX's keepalive
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
  int to_ = -1;
  FILE* from_ = nullptr;
};

/// Parent and child, introduced to each other.
struct Pair {
  explicit Pair(const std::string& role) : child(role) {
    node = or_throw(UcxNode::create(context));
    child.say(hex(node->address()));
    peer = unhex(child.hear());
    sender = or_throw(node->open_sender(peer, kThere, {}));
    receiver = or_throw(node->open_receiver(peer, kBack, {}));
  }
  Context context = make_context();
  Child child;
  std::shared_ptr<UcxNode> node;
  std::vector<std::byte> peer;
  std::unique_ptr<Sender> sender;
  std::unique_ptr<Receiver> receiver;
};

double seconds_since(std::chrono::steady_clock::time_point start) { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); }

// TRN-3, TRN-6
TEST(UcxPeer, MovesLargeTensorsBetweenProcesses) {
  Pair pair("echo");
  const Tensor source = make_pattern(DType::kU8, {kLarge}), target = make_tensor(DType::kU8, {kLarge});
  Operation sent = pair.sender->send({{}, {source}}, soon(pair.context));
  auto incoming = pair.receiver->receive(soon(pair.context));
  ASSERT_TRUE(incoming) << incoming.error().describe();
  const auto moved = std::move(*incoming).accept({target}, soon(pair.context)).wait();
  ASSERT_TRUE(moved) << moved.error().describe();
  ASSERT_TRUE(sent.wait());
  EXPECT_EQ(std::memcmp(source.data, target.data, static_cast<std::size_t>(kLarge)), 0);
#if defined(__SANITIZE_ADDRESS__)
  EXPECT_STREQ(moved->via, "shm");
#else
  EXPECT_STREQ(moved->via, "cma");
  EXPECT_EQ(moved->copies, 1);
#endif
}

// TRN-2, TRN-5, SUP-3: with the message held at the other side, and while it is announced over and over
TEST(UcxPeer, AKilledReceiverEndsWhatWasSentToIt) {
  Pair pair("hold");
  Operation sent = pair.sender->send({{}, {make_pattern(DType::kU8, {kLarge})}}, soon(pair.context));
  ASSERT_EQ(pair.child.hear(), "held");
  const auto start = std::chrono::steady_clock::now();
  pair.child.end(SIGKILL);
  const auto outcome = sent.wait();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Errc::kPeerLost);
  EXPECT_LT(seconds_since(start), 5.0);
  EXPECT_FALSE(pair.sender->send({{}, {make_pattern(DType::kU8, {8})}}, soon(pair.context)).wait()) << "a failed endpoint stays failed";
}

TEST(UcxPeer, AKilledSenderEndsTheReceive) {
  Pair pair("send");
  auto first = pair.receiver->receive(soon(pair.context));
  ASSERT_TRUE(first);
  const auto start = std::chrono::steady_clock::now();
  pair.child.end(SIGKILL);
  const auto next = pair.receiver->receive(soon(pair.context));
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().code, Errc::kPeerLost);
  EXPECT_LT(seconds_since(start), 5.0);
  const auto pulled = std::move(*first).accept({make_tensor(DType::kU8, {kLarge})}, soon(pair.context)).wait();
  EXPECT_FALSE(pulled) << "what it had offered went with it";
}

// SUP-10: UCX finds no frozen peer; the deadline does, and the control plane's word ends the rest
TEST(UcxPeer, AFrozenReceiverIsADeadlineAndThenAWord) {
  Pair pair("hold");
  pair.child.signal(SIGSTOP);
  const auto start = std::chrono::steady_clock::now();
  const auto late = pair.sender->send({{}, {make_pattern(DType::kU8, {kLarge})}}, in_ms(pair.context, 300)).wait();
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Errc::kTimeout);
  EXPECT_LT(seconds_since(start), 2.0);
  Operation pending = pair.sender->send({{}, {make_pattern(DType::kU8, {8})}}, soon(pair.context));
  pair.node->peer_down(pair.peer, {Errc::kPeerLost, "it has not answered for 5 s"});
  const auto told = pending.wait();
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().code, Errc::kPeerLost);
  EXPECT_LT(seconds_since(start), 5.0);
}

TEST(UcxPeer, GarbageIsNoAddress) {
  const Context context = make_context();
  const auto node = or_throw(UcxNode::create(context));
  auto broken = node->address();
  EXPECT_EQ(node->open_sender(std::span(broken).first(20), 1, {}).error().code, Errc::kBadData);
  broken[4] = std::byte{9};   // the version
  EXPECT_EQ(node->open_sender(broken, 1, {}).error().code, Errc::kMismatch);
  EXPECT_EQ(node->open_sender({}, 1, {}).error().code, Errc::kBadData);
}

/// What the child does until its stdin ends.
int be_peer(const std::string& role) {
  const Context context = make_context();
  const auto node = or_throw(UcxNode::create(context));
  std::cout << hex(node->address()) << std::endl;
  std::string line;
  std::getline(std::cin, line);
  const auto peer = unhex(line);
  const auto sender = or_throw(node->open_sender(peer, kBack, {}));
  const auto receiver = or_throw(node->open_receiver(peer, kThere, {}));
  std::optional<Incoming> held;
  std::vector<Operation> pending;
  if (role == "send") pending.push_back(sender->send({{}, {make_pattern(DType::kU8, {kLarge})}}, soon(context)));
  if (role != "send") {
    auto incoming = receiver->receive(soon(context));
    if (!incoming) return 1;
    if (role == "hold") {
      held = std::move(*incoming);
      std::cout << "held" << std::endl;
    } else {
      const Tensor target = make_tensor(DType::kU8, incoming->tensors().at(0).shape);
      if (!std::move(*incoming).accept({target}, soon(context)).wait()) return 1;
      if (!sender->send({{}, {target}}, soon(context)).wait()) return 1;
    }
  }
  while (std::getline(std::cin, line)) {}
  return 0;
}

}  // namespace
}  // namespace troupe::transport::test

int main(int argc, char** argv) {
  constexpr std::string_view kPeer = "--peer=";
  if (argc == 2 && std::string_view(argv[1]).starts_with(kPeer)) return troupe::transport::test::be_peer(std::string(argv[1]).substr(kPeer.size()));
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
