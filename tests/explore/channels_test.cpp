// One channel: credits, deadlines, rejection, references, and either end going at any message.
#include "scenarios.hpp"

#include <array>

#include <troupe/transport/channel.hpp>

namespace troupe::explore::test {
namespace {

using namespace std::chrono_literals;
using namespace troupe::transport;

constexpr int kMessages = 6;

Message numbered(const std::shared_ptr<std::vector<int>>& bytes, int number) {
  bytes->assign(16, number);
  return {{static_cast<std::byte>(number)}, {Tensor{bytes->data(), {DType::kI32, {16}, {}, {}}, bytes, nullptr}}};
}

/// What both sides know of one run.
struct Story {
  explicit Story(Trial& t) : trial(t), tally(t) {}
  Trial& trial;
  Tally tally;
  std::array<std::weak_ptr<std::vector<int>>, kMessages> lent;
  std::array<bool, kMessages> received{};
  int next_sequence = 0;
};

void send_all(Story& story, Sender& sender) {
  std::vector<Operation> sent;
  for (int number = 0; number < kMessages; ++number) {
    if (story.trial.one_in(15)) sender.end({Errc::kPeerLost, "the sender died"});
    auto bytes = std::make_shared<std::vector<int>>();
    story.lent[static_cast<std::size_t>(number)] = bytes;
    Message message = numbered(bytes, number);
    bytes = nullptr;
    const Duration patience = story.trial.one_in(4) ? Duration(std::chrono::milliseconds(story.trial.pick(20))) : Duration(1h);
    sent.push_back(sender.send(std::move(message), story.trial.clock()->after(patience)));
    story.tally.began("a send");
    sent.back().then([&story, number](const Result<Transferred>& result) {
      story.tally.ended("a send");
      if (result) story.trial.expect(story.received[static_cast<std::size_t>(number)], "TRN-1: a send succeeded that nobody received");
    });
    if (story.trial.one_in(3)) story.trial.sleep(std::chrono::milliseconds(story.trial.pick(10)));
  }
  for (auto& operation : sent) (void)operation.wait();
  if (story.trial.one_in(2)) sender.close();
}

/// Takes one message in one of the ways there are.
void take(Story& story, Incoming incoming) {
  const int number = static_cast<int>(incoming.meta().front());
  story.trial.expect(incoming.sequence() == static_cast<std::uint64_t>(story.next_sequence++), "TRN-1: a sequence number is missing");
  auto& received = story.received[static_cast<std::size_t>(number)];
  switch (story.trial.pick(6)) {
    case 0: return std::move(incoming).reject({Errc::kMismatch, "not wanted"});
    case 1: return;  // dropped
    case 2: {
      received = true;  // from here on the sender may see success
      auto tensors = std::move(incoming).accept_by_reference();
      if (!tensors) return;
      if (story.trial.one_in(2)) story.trial.sleep(std::chrono::milliseconds(story.trial.pick(10)));
      story.trial.expect(static_cast<const int*>(tensors->front().data)[15] == number, "bytes of another message");
      return;
    }
    default: {
      received = true;
      std::array<int, 16> target{};
      const auto pulled = std::move(incoming).accept({Tensor{target.data(), {DType::kI32, {16}, {}, {}}, nullptr, nullptr}}, story.trial.clock()->after(1h)).wait();
      if (pulled) story.trial.expect(target[0] == number && target[15] == number, "bytes of another message");
    }
  }
}

void receive_all(Story& story, Receiver& receiver) {
  for (;;) {
    if (story.trial.one_in(20)) receiver.end({Errc::kPeerLost, "the receiver died"});
    auto incoming = receiver.receive(story.trial.clock()->after(2h));
    if (!incoming) break;
    take(story, std::move(*incoming));
    if (story.trial.one_in(4)) story.trial.sleep(std::chrono::milliseconds(story.trial.pick(15)));
  }
  receiver.close();
}

void a_channel(Trial& trial) {
  Context context;
  context.clock = trial.clock();
  context.executor = std::make_shared<Executor>(trial.clock());
  context.log = std::make_shared<Log>([](LogLevel, std::string_view) {});
  context.counters = std::make_shared<TransferCounters>();
  Story story(trial);
  {
    auto ends = or_throw(open_inproc(context, {.credit_messages = 1 + trial.pick(3), .credit_bytes = trial.one_in(2) ? 100 : 1000}));
    story.tally.began("an end");
    ends.receiver->on_end([&](const Error&) { story.tally.ended("an end"); });
    const bool handled = trial.one_in(3);
    if (handled) ends.receiver->on_message([&](Incoming incoming) { take(story, std::move(incoming)); });
    Thread sender(*trial.clock(), "sender", [&] { send_all(story, *ends.sender); });
    Thread receiver;
    if (!handled) receiver = Thread(*trial.clock(), "receiver", [&] { receive_all(story, *ends.receiver); });
    if (trial.one_in(6)) {
      trial.sleep(std::chrono::milliseconds(trial.pick(30)));
      trial.one_in(2) ? ends.sender->close() : ends.receiver->close();
    }
    sender.join();
    if (handled && trial.one_in(2)) {
      trial.sleep(1s);
      trial.expect(ends.sender->writable() || !ends.sender->send({}, trial.clock()->after(1s)).wait(), "TRN-4: all credit is back, or the channel has ended");
    }
    if (!handled) receiver.join();
  }
  context.executor->stop();
  story.tally.expect_balanced();
  for (const auto& lent : story.lent) trial.expect(lent.expired(), "TRN-2: a tensor is still lent");
}

// TRN-1, TRN-2, TRN-4, TRN-5, SUP-1
TEST(ExploreChannels, EverySendEndsOnceAndReturnsItsBytes) { expect_sound({.seeds = 300}, a_channel); }
TEST(ExploreChannels, AlsoOnASlowMachine) { expect_sound({.first_seed = 1000, .seeds = 150, .deadlines = Passing::kAnyTime}, a_channel); }

}  // namespace
}  // namespace troupe::explore::test
