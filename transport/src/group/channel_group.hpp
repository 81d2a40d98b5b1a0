#pragma once

#include <functional>

#include "exchange.hpp"
#include "member.hpp"

namespace troupe::transport {

/// The CPU collectives, over channels of any backend. Every collective starts with a header from each
/// member to each other, which carries the data where there is some: the rendezvous that TRN-8 asks for.
class ChannelGroup final : public Group {
 public:
  ChannelGroup(const Context& context, GroupEnds ends);
  ~ChannelGroup() override;

  [[nodiscard]] int rank() const noexcept override { return member_->rank(); }
  [[nodiscard]] int size() const noexcept override { return member_->size(); }
  [[nodiscard]] const std::string& name() const noexcept override { return member_->name(); }
  [[nodiscard]] GroupTraffic traffic() const override;

  [[nodiscard]] Result<void> all_reduce(Tensor inout, Reduce reduce) override;
  [[nodiscard]] Result<void> all_gather(Tensor in, std::span<const Tensor> out) override;
  [[nodiscard]] Result<void> reduce_scatter(std::span<const Tensor> in, Tensor out) override;
  [[nodiscard]] Result<void> all_to_all(std::span<const Tensor> in, std::span<const Tensor> out) override;
  [[nodiscard]] Result<void> broadcast(Tensor inout, int root) override;
  [[nodiscard]] Result<void> barrier() override;
  void begin(std::uint64_t ticket, Deadline deadline) override;
  void abort(const Error& why) override;

 private:
  using Body = std::function<Result<void>(Exchange&)>;

  [[nodiscard]] Result<void> run(Header header, const Result<void>& valid, const Body& body);
  [[nodiscard]] Error refuse_later(const Error& first);
  [[nodiscard]] Result<void> exchange_chunks(Exchange& exchange, const std::vector<Tensor>& chunks);
  void copy_own(const Tensor& target, const Tensor& source);

  const std::shared_ptr<Member> member_;
  Position position_ = {};
  std::optional<Deadline> deadline_;  // none: kGroupPatience from each call
  bool failed_ = false;               // this member has returned a failure
  Loose loose_;
  mutable std::mutex mutex_;  // traffic_: written by the rank, read by reports
  GroupTraffic traffic_;
};

}  // namespace troupe::transport
