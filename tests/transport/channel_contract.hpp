#pragma once

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <troupe/transport/channel.hpp>

#include "tensors.hpp"

namespace troupe::transport::test {

/// One way to open a channel. A backend that comes later adds one line where the suites are instantiated.
struct ChannelBackend {
  std::string name;
  Result<ChannelPair> (*open)(const Context&, const ChannelOptions&);
  bool by_reference;  ///< Whether accept_by_reference() works, as in one process.
  std::string via;
};

inline void PrintTo(const ChannelBackend& backend, std::ostream* out) { *out << backend.name; }

/// What every backend promises.
class ChannelContract : public testing::TestWithParam<ChannelBackend> {
 protected:
  ChannelContract() { reopen({}); }

  void reopen(ChannelOptions options) {
    options.name = "contract";
    auto pair = GetParam().open(context_, options);
    ASSERT_TRUE(pair) << pair.error().describe();
    sender_ = std::move(pair->sender);
    receiver_ = std::move(pair->receiver);
  }

  [[nodiscard]] Deadline soon() const { return test::soon(context_); }

  /// One tensor across: the receiver's operation, after the sender's has been checked to agree.
  Result<Transferred> move(const Tensor& source, const Tensor& target) {
    Operation sent = sender_->send({{}, {source}}, soon());
    auto incoming = receiver_->receive(soon());
    if (!incoming) return fail(incoming.error());
    auto received = std::move(*incoming).accept({target}, soon()).wait();
    auto outcome = sent.wait();
    EXPECT_EQ(outcome.has_value(), received.has_value());
    return received;
  }

  Context context_ = make_context();
  std::unique_ptr<Sender> sender_;
  std::unique_ptr<Receiver> receiver_;
};

class ChannelFailure : public ChannelContract {};

/// For INSTANTIATE_TEST_SUITE_P: the backend's name as the test's.
inline std::string backend_name(const testing::TestParamInfo<ChannelBackend>& info) { return info.param.name; }

}  // namespace troupe::transport::test
