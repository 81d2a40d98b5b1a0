// What happens when something does not: deadlines, close, rejection, credits. Every operation ends once.
#include "channel_contract.hpp"

#include <atomic>

namespace troupe::transport::test {
namespace {

Message one(std::int64_t bytes) { return {{}, {make_pattern(DType::kU8, {bytes})}}; }

TEST_P(ChannelFailure, ASendThatNobodyTakesEndsAtItsDeadline) {  // TRN-2
  const auto sent = sender_->send(one(100), in_ms(context_, 50)).wait();
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, Errc::kTimeout);
}

TEST_P(ChannelFailure, AReceiveWithoutAMessageEndsAtItsDeadline) {
  const auto incoming = receiver_->receive(in_ms(context_, 50));
  ASSERT_FALSE(incoming);
  EXPECT_EQ(incoming.error().code, Errc::kTimeout);
  const Tensor source = make_pattern(DType::kU8, {9}), target = make_tensor(DType::kU8, {9});
  EXPECT_TRUE(move(source, target)) << "and the channel goes on";
}

TEST_P(ChannelFailure, CloseEndsWhatIsPendingOnBothEnds) {  // TRN-2, TRN-5
  Operation sent = sender_->send(one(100), soon());
  receiver_->close();
  EXPECT_FALSE(sent.wait());
  EXPECT_FALSE(sender_->send(one(1), soon()).wait()) << "a failed endpoint stays failed";
  EXPECT_FALSE(receiver_->receive(soon()));
}

TEST_P(ChannelFailure, CloseOfTheSenderEndsAWaitingReceive) {
  std::atomic<bool> ended{false};
  on_threads(2, [&](int which) {
    if (which == 0) {
      const auto incoming = receiver_->receive(soon());
      EXPECT_FALSE(incoming);
      ended = true;
    } else {
      sender_->close();
      sender_->close();  // idempotent
    }
  });
  EXPECT_TRUE(ended);
}

TEST_P(ChannelFailure, ARejectionReachesTheSender) {  // TRN-1
  Operation sent = sender_->send(one(10), soon());
  auto incoming = receiver_->receive(soon());
  ASSERT_TRUE(incoming);
  std::move(*incoming).reject(Error{.code = Errc::kMismatch, .message = "not what was agreed"});
  const auto outcome = sent.wait();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Errc::kMismatch);
  EXPECT_NE(outcome.error().describe().find("not what was agreed"), std::string::npos);
}

TEST_P(ChannelFailure, ADroppedMessageIsARejection) {
  Operation sent = sender_->send(one(10), soon());
  { auto incoming = receiver_->receive(soon()); }
  EXPECT_EQ(sent.wait().error().code, Errc::kClosed);
}

TEST_P(ChannelFailure, TargetsOfAnotherShapeArePulledNothing) {  // L1: never flat bytes into another shape
  Operation sent = sender_->send(one(10), soon());
  auto incoming = receiver_->receive(soon());
  ASSERT_TRUE(incoming);
  const Tensor target = make_tensor(DType::kU8, {2, 5});
  const auto pulled = std::move(*incoming).accept({target}, soon()).wait();
  ASSERT_FALSE(pulled);
  EXPECT_EQ(pulled.error().code, Errc::kMismatch);
  EXPECT_FALSE(sent.wait());
  EXPECT_EQ(packed(target), packed(make_tensor(DType::kU8, {2, 5})));
}

TEST_P(ChannelFailure, PastTheCreditsTheSenderQueuesAndSaysSo) {  // TRN-4
  reopen({.credit_messages = 2});
  std::vector<Operation> sent;
  for (int i = 0; i < 4; ++i) sent.push_back(sender_->send(one(10 + i), soon()));
  EXPECT_FALSE(sender_->writable());
  for (int i = 0; i < 4; ++i) {
    auto incoming = receiver_->receive(soon());
    ASSERT_TRUE(incoming) << i;
    EXPECT_EQ(incoming->sequence(), static_cast<std::uint64_t>(i));
    EXPECT_TRUE(std::move(*incoming).accept({make_tensor(DType::kU8, {10 + i})}, soon()).wait());
  }
  for (auto& operation : sent) EXPECT_TRUE(operation.wait());
  EXPECT_TRUE(sender_->writable());
}

TEST_P(ChannelFailure, EveryOperationEndsOnceWhileCloseRacesThePull) {  // TRN-2, 200 races
  for (int round = 0; round < 200; ++round) {
    reopen({});
    std::atomic<int> sent_ends{0}, received_ends{0};
    Operation sent = sender_->send(one(4096), soon());
    sent.then([&](const Result<Transferred>&) { ++sent_ends; });
    on_threads(2, [&](int which) {
      if (which == 0) return sender_->close();
      auto incoming = receiver_->receive(soon());
      if (!incoming) return;
      Operation received = std::move(*incoming).accept({make_tensor(DType::kU8, {4096})}, soon());
      received.then([&](const Result<Transferred>&) { ++received_ends; });
      (void)received.wait();
    });
    (void)sent.wait();
    context_.executor->stop();
    EXPECT_EQ(sent_ends, 1);
    EXPECT_LE(received_ends, 1);
    context_ = make_context();
  }
}

TEST_P(ChannelFailure, AnOperationThatEndsAfterItsExecutorStillRunsItsFunction) {  // TRN-2; found by exploration, seed 9906
  Operation sent = sender_->send(one(10), soon());
  std::atomic<int> ran{0};
  sent.then([&](const Result<Transferred>& result) { ran += result ? 100 : 1; });
  context_.executor->stop();
  sender_->close();
  EXPECT_EQ(ran, 1);
}

TEST_P(ChannelFailure, TheSendersMemoryIsHeldUntilNobodyReadsIt) {  // TRN-2: quarantine
  Message message = one(1 << 20);
  std::weak_ptr<const void> held = message.tensors[0].keep;
  Operation sent = sender_->send(std::move(message), soon());
  auto incoming = receiver_->receive(soon());
  ASSERT_TRUE(incoming);
  EXPECT_FALSE(held.expired());
  EXPECT_TRUE(std::move(*incoming).accept({make_tensor(DType::kU8, {1 << 20})}, soon()).wait());
  EXPECT_TRUE(sent.wait());
  sent = {};
  reopen({});
  EXPECT_TRUE(held.expired());
}

}  // namespace
}  // namespace troupe::transport::test
