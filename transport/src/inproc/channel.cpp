#include <utility>

#include <troupe/transport/channel.hpp>

#include "link.hpp"

namespace troupe::transport {
namespace {

using inproc::Link;

class InprocSender final : public Sender {
 public:
  explicit InprocSender(std::shared_ptr<Link> link) : link_(std::move(link)) {}
  ~InprocSender() override { close({Errc::kClosed, "the sending end has gone"}); }

  Operation send(Message message, Deadline deadline) override { return link_->send(std::move(message), deadline); }
  bool writable() const override { return link_->writable(); }
  void end(Error why) override { link_->end(std::move(why)); }
  void close(Error why) override {
    link_->end(std::move(why));
    link_->wait_idle();
  }

 private:
  std::shared_ptr<Link> link_;
};

class InprocReceiver final : public Receiver {
 public:
  explicit InprocReceiver(std::shared_ptr<Link> link) : link_(std::move(link)) {}
  ~InprocReceiver() override { close({Errc::kClosed, "the receiving end has gone"}); }

  Result<Incoming> receive(Deadline deadline) override { return link_->receive(deadline); }
  void on_message(std::function<void(Incoming)> handler) override { link_->on_message(std::move(handler)); }
  void on_end(std::function<void(const Error&)> handler) override { link_->on_end(std::move(handler)); }
  void end(Error why) override { link_->end(std::move(why)); }
  void close(Error why) override {
    link_->end(std::move(why));
    link_->wait_idle();
  }

 private:
  std::shared_ptr<Link> link_;
};

}  // namespace

Result<ChannelPair> open_inproc(const Context& context, const ChannelOptions& options) {
  if (auto ok = check(options); !ok) return fail(std::move(ok.error()));
  auto link = std::make_shared<Link>(Services(context), options);
  return ChannelPair{std::make_unique<InprocSender>(link), std::make_unique<InprocReceiver>(link)};
}

}  // namespace troupe::transport
