// What arrives: values, order, descriptors, paths.
#include "channel_contract.hpp"

#include <cstring>

namespace troupe::transport::test {
namespace {

Bytes meta(std::string_view text) {
  Bytes bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

TEST_P(ChannelContract, MovesEverySize) {  // TRN-3, Z1
  for (const std::int64_t bytes : {0, 1, 3, 63, 64, 65, 12345, (1 << 20) + 1}) {
    const Tensor source = make_pattern(DType::kU8, {bytes}), target = make_tensor(DType::kU8, {bytes});
    const auto moved = move(source, target);
    ASSERT_TRUE(moved) << bytes << ": " << moved.error().describe();
    EXPECT_EQ(moved->bytes, bytes);
    EXPECT_EQ(packed(target), packed(source)) << bytes;
  }
}

TEST_P(ChannelContract, MovesEveryDTypeByItsBytes) {  // TRN-3, T1, T3
  for (const DType dtype : kAllDTypes) {
    const Tensor source = make_pattern(dtype, {3, 5, 7}), target = make_tensor(dtype, {3, 5, 7});
    const auto moved = move(source, target);
    ASSERT_TRUE(moved) << to_string(dtype) << ": " << moved.error().describe();
    EXPECT_EQ(moved->bytes, 105 * size_of(dtype));
    EXPECT_EQ(packed(target), packed(source)) << to_string(dtype);
  }
}

TEST_P(ChannelContract, MovesTensorsWithoutDims) {  // TRN-3, T2
  for (const DType dtype : kAllDTypes) {
    const Tensor source = make_pattern(dtype, {}), target = make_tensor(dtype, {});
    ASSERT_TRUE(move(source, target)) << to_string(dtype);
    EXPECT_EQ(packed(target), packed(source)) << to_string(dtype);
  }
}

TEST_P(ChannelContract, StridesOfTheSenderAreFollowed) {  // TRN-3, L1, L2
  for (const DType dtype : kAllDTypes) {
    const Tensor base = make_pattern(dtype, {12, 10});
    for (const Tensor& source : {view(base, {12}, {10}, 3), view(base, {10, 12}, {1, 10}), view(base, {6, 10}, {20, 1}),
                                 view(base, {12, 4}, {10, 1}, 2), view(base, {5, 10}, {0, 1}), view(base, {10}, {-1}, 9)}) {
      const Tensor target = make_tensor(dtype, source.desc.shape);
      ASSERT_TRUE(move(source, target));
      EXPECT_EQ(packed(target), packed(source)) << source.desc.to_string();
    }
  }
}

TEST_P(ChannelContract, StridesOfTheReceiverAreFollowed) {  // TRN-3, L1, L2
  for (const DType dtype : kAllDTypes) {
    const Tensor base = make_tensor(dtype, {12, 10});
    const Tensor column = view(base, {12}, {10}, 3);
    const Tensor source = make_pattern(dtype, {12});
    ASSERT_TRUE(move(source, column));
    EXPECT_EQ(packed(column), packed(source)) << to_string(dtype);
    std::int64_t touched = 0;
    for (const std::byte byte : packed(base)) touched += byte != std::byte{0};
    EXPECT_LE(touched, 12 * size_of(dtype)) << "bytes beside the view were written";
  }
}

TEST_P(ChannelContract, BothSidesMayHaveDifferentStrides) {  // TRN-3, L1
  const Tensor from = make_pattern(DType::kF32, {9, 11}), to = make_tensor(DType::kF32, {20, 30});
  const Tensor source = view(from, {11, 9}, {1, 11}), target = view(to, {11, 9}, {30, 2}, 5);
  ASSERT_TRUE(move(source, target));
  EXPECT_EQ(packed(target), packed(source));
}

TEST_P(ChannelContract, ZeroElementsCompleteWithTheirMeta) {  // Z1
  Operation sent = sender_->send({meta("empty"), {make_tensor(DType::kF32, {4, 0, 3})}}, soon());
  auto incoming = receiver_->receive(soon());
  ASSERT_TRUE(incoming);
  EXPECT_EQ(Bytes(incoming->meta().begin(), incoming->meta().end()), meta("empty"));
  EXPECT_EQ(incoming->tensors().at(0).shape, (Shape{4, 0, 3}));
  ASSERT_TRUE(std::move(*incoming).accept({make_tensor(DType::kF32, {4, 0, 3})}, soon()).wait());
  EXPECT_EQ(sent.wait()->bytes, 0);
}

TEST_P(ChannelContract, ManyTensorsTravelAsOneMessage) {
  Message message{meta("head"), {}};
  std::vector<Tensor> targets;
  std::int64_t bytes = 0;
  for (int i = 0; i < 1000; ++i) {
    message.tensors.push_back(make_pattern(kAllDTypes[i % 17], {i % 5, 3}, i));
    targets.push_back(make_tensor(kAllDTypes[i % 17], {i % 5, 3}));
    bytes += targets.back().desc.bytes();
  }
  const std::vector<Tensor> sources = message.tensors;
  Operation sent = sender_->send(std::move(message), soon());
  auto incoming = receiver_->receive(soon());
  ASSERT_TRUE(incoming);
  ASSERT_EQ(incoming->tensors().size(), 1000u);
  const auto received = std::move(*incoming).accept(targets, soon()).wait();
  ASSERT_TRUE(received) << received.error().describe();
  EXPECT_EQ(received->bytes, bytes);
  EXPECT_EQ(sent.wait()->bytes, bytes);
  for (std::size_t i = 0; i < targets.size(); ++i) EXPECT_EQ(packed(targets[i]), packed(sources[i])) << i;
}

TEST_P(ChannelContract, TheReceiverSeesTheDescriptorBeforeAnyByteMoves) {  // TRN-1
  const Tensor base = make_pattern(DType::kBf16, {64, 64});
  Operation sent = sender_->send({meta("m"), {view(base, {64, 8}, {64, 1})}}, soon());
  auto incoming = receiver_->receive(soon());
  ASSERT_TRUE(incoming);
  const TensorDesc& desc = incoming->tensors().at(0);
  EXPECT_EQ(desc.dtype, DType::kBf16);
  EXPECT_EQ(desc.shape, (Shape{64, 8}));
  EXPECT_EQ(desc.bytes(), 1024);
  EXPECT_EQ(context_.counters->copied_bytes.load(), GetParam().by_reference ? 0 : 1024) << "between processes what is strided is packed where it is, and waits";
  EXPECT_FALSE(sent.done()) << "sent is not received";
  ASSERT_TRUE(std::move(*incoming).accept({make_tensor(DType::kBf16, {64, 8})}, soon()).wait());
  EXPECT_TRUE(sent.wait());
}

TEST_P(ChannelContract, ADeferredAcceptGetsItsMessage) {  // TRN-1
  std::vector<Operation> sent;
  std::vector<Incoming> held;
  for (int i = 0; i < 10; ++i) sent.push_back(sender_->send({{}, {make_pattern(DType::kI32, {100}, i)}}, soon()));
  for (int i = 0; i < 10; ++i) held.push_back(std::move(*receiver_->receive(soon())));
  for (std::size_t i = 10; i-- > 0;) {  // completions need no order
    EXPECT_FALSE(sent[i].done());
    const Tensor target = make_tensor(DType::kI32, {100});
    ASSERT_TRUE(std::move(held[i]).accept({target}, soon()).wait());
    EXPECT_TRUE(sent[i].wait());
    EXPECT_EQ(packed(target), packed(make_pattern(DType::kI32, {100}, static_cast<int>(i))));
  }
}

TEST_P(ChannelContract, MessagesKeepTheirOrderAndCountFromZero) {  // TRN-1
  reopen({.credit_messages = 7});
  std::vector<Operation> sent;
  for (std::uint64_t i = 0; i < 200; ++i) sent.push_back(sender_->send({Bytes(8, static_cast<std::byte>(i)), {}}, soon()));
  for (std::uint64_t i = 0; i < 200; ++i) {
    auto incoming = receiver_->receive(soon());
    ASSERT_TRUE(incoming);
    EXPECT_EQ(incoming->sequence(), i);
    EXPECT_EQ(incoming->meta()[0], static_cast<std::byte>(i));
    ASSERT_TRUE(std::move(*incoming).accept({}, soon()).wait());
  }
  for (const Operation& operation : sent) EXPECT_TRUE(operation.wait());
}

TEST_P(ChannelContract, ConcurrentSendersLoseNothing) {  // TRN-1
  constexpr int kThreads = 4, kEach = 50;
  std::vector<int> seen(kThreads, 0);
  on_threads(kThreads + 1, [&](int thread) {
    for (int i = 0; thread < kThreads && i < kEach; ++i) {
      Bytes bytes{static_cast<std::byte>(thread), static_cast<std::byte>(i)};
      EXPECT_TRUE(sender_->send({std::move(bytes), {}}, soon()).wait());
    }
    for (int i = 0; thread == kThreads && i < kThreads * kEach; ++i) {
      auto incoming = receiver_->receive(soon());
      ASSERT_TRUE(incoming);
      const auto from = static_cast<std::size_t>(incoming->meta()[0]);
      EXPECT_EQ(static_cast<int>(incoming->meta()[1]), seen[from]++);  // each sender's own order stands
      ASSERT_TRUE(std::move(*incoming).accept({}, soon()).wait());
    }
  });
}

TEST_P(ChannelContract, ReportsThePathAndTheCopies) {  // TRN-6
  const Tensor source = make_pattern(DType::kF32, {1000}), target = make_tensor(DType::kF32, {1000});
  const auto moved = move(source, target);
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->via, GetParam().via);
  EXPECT_GE(moved->copies, 1);
  EXPECT_EQ(context_.counters->copied_bytes.load(), 4000 * moved->copies);
  EXPECT_EQ(context_.counters->messages.load(), 1);
}

TEST_P(ChannelContract, TheSenderMayWriteOnceItsOperationIsComplete) {  // TRN-2, A1
  const Tensor source = make_pattern(DType::kU8, {100'000}), target = make_tensor(DType::kU8, {100'000});
  const Bytes before = packed(source);
  ASSERT_TRUE(move(source, target));
  std::memset(source.data, 0xee, 100'000);
  EXPECT_EQ(packed(target), before);
}

TEST_P(ChannelContract, AReferenceIsTheSendersMemoryUntilItIsDropped) {  // TRN-2, TRN-6
  const Tensor source = make_pattern(DType::kF64, {1000}), target = make_tensor(DType::kF64, {1000});
  Operation sent = sender_->send({{}, {source}}, soon());
  auto incoming = receiver_->receive(soon());
  ASSERT_TRUE(incoming);
  auto tensors = std::move(*incoming).accept_by_reference();
  if (!GetParam().by_reference) {
    ASSERT_EQ(tensors.error().code, Errc::kUnavailable);
    ASSERT_TRUE(std::move(*incoming).accept({target}, soon()).wait()) << "it can still be pulled";
    EXPECT_EQ(packed(target), packed(source));
    return;
  }
  ASSERT_TRUE(tensors) << tensors.error().describe();
  EXPECT_EQ(tensors->at(0).data, source.data);
  EXPECT_FALSE(sent.done());
  EXPECT_EQ(context_.counters->copied_bytes.load(), 0);
  EXPECT_EQ(context_.counters->referenced_bytes.load(), 8000);
  tensors->clear();
  ASSERT_TRUE(sent.wait());
  EXPECT_STREQ(sent.wait()->via, "reference");
  EXPECT_EQ(sent.wait()->copies, 0);
}

TEST_P(ChannelContract, HandlersGetMessagesInOrder) {  // TRN-1, SUP-7
  std::vector<int> seen;
  Operation last;
  const auto own = std::this_thread::get_id();
  receiver_->on_message([&](Incoming incoming) {
    EXPECT_NE(std::this_thread::get_id(), own);
    seen.push_back(static_cast<int>(incoming.meta()[0]));
    (void)std::move(incoming).accept({}, soon());
  });
  for (int i = 0; i < 100; ++i) last = sender_->send({Bytes(1, static_cast<std::byte>(i)), {}}, soon());
  ASSERT_TRUE(last.wait());
  receiver_->close();  // no handler runs any more
  ASSERT_EQ(seen.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
}

TEST_P(ChannelContract, AThousandChannelsWorkSideBySide) {
  std::vector<ChannelPair> pairs;
  for (int i = 0; i < 1000; ++i) pairs.push_back(GetParam().open(context_, {}).value());
  std::vector<Operation> sent;
  for (int i = 0; i < 1000; ++i) sent.push_back(pairs[static_cast<std::size_t>(i)].sender->send({{}, {make_pattern(DType::kI16, {50}, i)}}, soon()));
  for (int i = 0; i < 1000; ++i) {
    const Tensor target = make_tensor(DType::kI16, {50});
    auto incoming = pairs[static_cast<std::size_t>(i)].receiver->receive(soon());
    ASSERT_TRUE(incoming);
    ASSERT_TRUE(std::move(*incoming).accept({target}, soon()).wait());
    EXPECT_EQ(packed(target), packed(make_pattern(DType::kI16, {50}, i)));
  }
  for (const Operation& operation : sent) EXPECT_TRUE(operation.wait());
}

}  // namespace
}  // namespace troupe::transport::test
