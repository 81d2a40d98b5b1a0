// Opening the ends of channels and groups of a node.
#include <utility>

#include <troupe/base/text.hpp>

#include "group/member.hpp"
#include "inbox.hpp"
#include "node.hpp"
#include "outbox.hpp"

namespace troupe::transport::ucx {
namespace {

class UcxSender final : public Sender {
 public:
  UcxSender(std::shared_ptr<Node> node, std::shared_ptr<Outbox> box) : node_(std::move(node)), box_(std::move(box)) {}
  ~UcxSender() override { close({Errc::kClosed, "the sending end has gone"}); }
  Operation send(Message message, Deadline deadline) override { return box_->send(std::move(message), deadline); }
  bool writable() const override { return box_->writable(); }
  void end(Error why) override { box_->end(why, true); }
  void close(Error why) override {
    box_->end(why, true);
    box_->wait_idle();
  }

 private:
  const std::shared_ptr<Node> node_;
  const std::shared_ptr<Outbox> box_;
};

class UcxReceiver final : public Receiver {
 public:
  UcxReceiver(std::shared_ptr<Node> node, std::shared_ptr<Inbox> box) : node_(std::move(node)), box_(std::move(box)) {}
  ~UcxReceiver() override { close({Errc::kClosed, "the receiving end has gone"}); }
  Result<Incoming> receive(Deadline deadline) override { return box_->receive(deadline); }
  void on_message(std::function<void(Incoming)> handler) override { box_->on_message(std::move(handler)); }
  void on_end(std::function<void(const Error&)> handler) override { box_->on_end(std::move(handler)); }
  void end(Error why) override { box_->end(why, true); }
  void close(Error why) override {
    box_->end(why, true);
    box_->wait_idle();
  }

 private:
  const std::shared_ptr<Node> node_;
  const std::shared_ptr<Inbox> box_;
};

}  // namespace

Result<std::unique_ptr<Sender>> Node::open_sender(std::span<const std::byte> peer, std::uint64_t number, const ChannelOptions& options) {
  if (auto ok = check(options); !ok) return fail(std::move(ok.error()));
  const auto address = read_address(peer);
  if (!address) return fail(address.error());
  std::shared_ptr<Outbox> box;
  auto opened = run([&]() -> Result<void> {
    auto found = peer_of(*address);
    if (!found) return fail(std::move(found.error()));
    box = std::make_shared<Outbox>(*this, **found, number, options);
    if (!outboxes_.emplace(Key{address->node, number}, box).second) return fail(Errc::kInvalidArgument, text("channel ", options.name, ": number ", number, " to this peer is open"));
    return {};
  });
  if (!opened) return fail(std::move(opened.error()));
  return std::make_unique<UcxSender>(shared_from_this(), std::move(box));
}

Result<std::unique_ptr<Receiver>> Node::open_receiver(std::span<const std::byte> peer, std::uint64_t number, const ChannelOptions& options) {
  if (auto ok = check(options); !ok) return fail(std::move(ok.error()));
  const auto address = read_address(peer);
  if (!address) return fail(address.error());
  std::shared_ptr<Inbox> box;
  auto opened = run([&]() -> Result<void> {
    auto found = peer_of(*address);
    if (!found) return fail(std::move(found.error()));
    const Key key{address->node, number};
    if (closed_.contains(key)) return fail(Errc::kInvalidArgument, text("channel ", options.name, ": number ", number, " from this peer was used before; numbers are used once"));
    box = std::make_shared<Inbox>(*this, **found, number, options);
    if (!inboxes_.emplace(key, box).second) return fail(Errc::kInvalidArgument, text("channel ", options.name, ": number ", number, " from this peer is open"));
    auto early = early_.extract(key);
    if (early.empty()) return {};
    early_count_ -= early.mapped().size();
    for (auto& one : early.mapped()) dispatch(one.head, std::move(one.arrival), *one.worker);
    return {};
  });
  if (!opened) return fail(std::move(opened.error()));
  return std::make_unique<UcxReceiver>(shared_from_this(), std::move(box));
}

Result<std::unique_ptr<Group>> Node::open_group(const std::string& name, std::uint64_t number, int rank, std::span<const std::vector<std::byte>> members) {
  const int size = static_cast<int>(members.size());
  if (rank < 0 || rank >= size) return fail(Errc::kInvalidArgument, text("group ", name, ": rank ", rank, " of ", size));
  GroupEnds ends{.name = name, .rank = rank, .size = size};
  ends.to.resize(members.size());
  ends.from.resize(members.size());
  for (int other = 0; other < size; ++other) {
    if (other == rank) continue;
    const auto at = static_cast<std::size_t>(other);
    auto to = open_sender(members[at], number, {.name = text(name, " ", rank, "->", other)});
    if (!to) return fail(std::move(to.error()));
    auto from = open_receiver(members[at], number, {.name = text(name, " ", other, "->", rank)});
    if (!from) return fail(std::move(from.error()));
    ends.to[at] = std::move(*to);
    ends.from[at] = std::move(*from);
  }
  Context context{services_.clock, std::shared_ptr<Executor>(std::shared_ptr<void>(), services_.executor), services_.log, services_.counters};
  return make_group(context, std::move(ends));
}

}  // namespace troupe::transport::ucx
