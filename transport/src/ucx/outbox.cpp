#include "outbox.hpp"

#include <algorithm>
#include <utility>

#include <troupe/base/text.hpp>

#include "memory.hpp"

namespace troupe::transport::ucx {
namespace {

constexpr std::int64_t kInlineBytes = 1024;          // a message this small is one eager message
constexpr std::int64_t kAloneBytes = 64 << 10;       // below, a pull of its own costs more than the copy
constexpr Duration kClosePatience = std::chrono::seconds(5);

/// Contiguous, and large or the only one with bytes: pulled from where it is.
std::vector<std::uint8_t> who_travels_alone(const std::vector<Tensor>& tensors) {
  std::int64_t with_bytes = 0;
  for (const Tensor& tensor : tensors) with_bytes += tensor.desc.bytes() > 0 ? 1 : 0;
  std::vector<std::uint8_t> out;
  for (const Tensor& tensor : tensors) {
    const std::int64_t bytes = tensor.desc.bytes();
    const bool is_worth_it = bytes >= kAloneBytes || (with_bytes == 1 && bytes > kInlineBytes);
    out.push_back(tensor.desc.contiguous() && is_worth_it ? 1 : 0);
  }
  return out;
}

/// Copies what travels packed; each tensor begins on kAlign (TRN-3).
void pack(const std::vector<Tensor>& tensors, const Packing& packing, std::byte* target, TransferCounters& counters) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (packing.offsets[i] < 0 || tensors[i].desc.bytes() == 0) continue;
    Tensor place{target + packing.offsets[i], {tensors[i].desc.dtype, tensors[i].desc.shape}};
    or_throw(copy_tensor(place, tensors[i], counters));
  }
}

}  // namespace

void Outgoing::expire() { outbox_->expire(*this); }

Outbox::Outbox(Node& node, Peer& peer, std::uint64_t number, ChannelOptions options)
    : node_(node), peer_(peer), number_(number), options_(std::move(options)), idle_(*node.services().clock) {}

Operation Outbox::send(Message message, Deadline deadline) {
  for (const Tensor& tensor : message.tensors) {
    if (auto valid = validate_host(tensor); !valid) return ended_operation(node_.services(), fail(valid.error()));
  }
  auto outgoing = std::make_shared<Outgoing>(node_.services(), shared_from_this(), std::move(message), deadline);
  std::unique_lock lock(mutex_);
  if (ended_) {
    const Error why = *ended_;
    lock.unlock();
    return ended_operation(node_.services(), fail(why));
  }
  if (waiting_.empty() && fits(*outgoing)) {
    take(outgoing);
    node_.post([self = shared_from_this(), outgoing] { self->transmit(outgoing); });   // in the order of numbers: under the lock
  } else {
    waiting_.push_back(outgoing);
  }
  lock.unlock();
  return Operation(std::move(outgoing));
}

bool Outbox::writable() const {
  const std::lock_guard lock(mutex_);
  return !ended_ && waiting_.empty() && static_cast<std::int64_t>(open_.size()) < options_.credit_messages && open_bytes_ < options_.credit_bytes;
}

bool Outbox::fits(const Outgoing& outgoing) const {
  if (open_.empty()) return true;   // larger than all credit: alone
  return static_cast<std::int64_t>(open_.size()) < options_.credit_messages && open_bytes_ + outgoing.credit_bytes <= options_.credit_bytes;
}

void Outbox::take(const OutgoingPtr& outgoing) {
  outgoing->sequence = next_++;
  open_.emplace(outgoing->sequence, outgoing);
  open_bytes_ += outgoing->credit_bytes;
}

void Outbox::transmit(const OutgoingPtr& outgoing) {
  if (peer_.lost) return;   // end() has told it
  const std::vector<Tensor>& tensors = outgoing->message.tensors;
  Announcement announcement;
  for (const Tensor& tensor : tensors) announcement.tensors.push_back({tensor.desc.dtype, tensor.desc.shape});
  announcement.alone = who_travels_alone(tensors);
  announcement.meta = outgoing->message.meta;
  const Packing packing = packing_of(announcement.tensors, announcement.alone);
  TransferCounters& counters = *node_.services().counters;
  std::shared_ptr<std::byte> packed;
  const bool none_alone = std::ranges::find(announcement.alone, 1) == announcement.alone.end();
  announcement.is_inline = none_alone && packing.bytes <= kInlineBytes;
  if (announcement.is_inline) {
    announcement.packed.resize(static_cast<std::size_t>(packing.bytes));
    pack(tensors, packing, announcement.packed.data(), counters);
  } else if (packing.bytes > 0) {
    auto allocated = allocate(packing.bytes);
    if (!allocated) return answered(outgoing->sequence, {.kind = Kind::kNack, .why = allocated.error()});
    packed = std::move(*allocated);
    pack(tensors, packing, packed.get(), counters);
  }
  counters.messages.fetch_add(1, std::memory_order_relaxed);
  const Head head = node_.head(number_, outgoing->sequence);
  peer_.worker->send(peer_.endpoint, Am::kAnnounce, std::as_bytes(std::span(&head, 1)), write(announcement), {});
  std::uint64_t part = 0;
  if (packed) offer(outgoing, part++, packed.get(), packing.bytes, packed);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (announcement.alone[i] != 0) offer(outgoing, part++, tensors[i].data, tensors[i].desc.bytes(), tensors[i].keep);
  }
}

void Outbox::offer(const OutgoingPtr& outgoing, std::uint64_t part, const void* data, std::int64_t size, std::shared_ptr<const void> keep) {
  ++outgoing->parts_in_flight;
  {
    const std::lock_guard lock(mutex_);
    ++parts_;
  }
  const Head head = node_.head(number_, outgoing->sequence, part);
  // TRN-2: lent until UCX has done with it, whatever became of the operation
  peer_.worker->offer(peer_.endpoint, std::as_bytes(std::span(&head, 1)), data, static_cast<std::size_t>(size),
                      [self = shared_from_this(), outgoing, keep = std::move(keep)](ucs_status_t) { self->part_done(outgoing); });
}

void Outbox::part_done(const OutgoingPtr& outgoing) {
  if (--outgoing->parts_in_flight == 0 && outgoing->done()) outgoing->message.tensors.clear();
  const std::lock_guard lock(mutex_);
  if (--parts_ == 0) idle_.notify_all();
}

void Outbox::answered(std::uint64_t sequence, const Control& control) {
  OutgoingPtr outgoing;
  std::vector<OutgoingPtr> next;
  {
    const std::lock_guard lock(mutex_);
    const auto found = open_.find(sequence);
    if (found == open_.end()) return;
    outgoing = std::move(found->second);
    open_.erase(found);
    open_bytes_ -= outgoing->credit_bytes;
    while (!ended_ && !waiting_.empty() && fits(*waiting_.front())) {
      take(waiting_.front());
      next.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
  }
  std::int64_t bytes = 0;
  for (const Tensor& tensor : outgoing->message.tensors) bytes += tensor.desc.bytes();
  if (outgoing->parts_in_flight == 0) outgoing->message.tensors.clear();
  if (control.kind == Kind::kAck) {
    (void)outgoing->complete(Transferred{bytes, to_string(static_cast<Via>(control.via)), control.copies});
  } else {
    (void)outgoing->complete(fail(control.why));
  }
  for (const auto& one : next) transmit(one);
}

Error Outbox::overdue(const Outgoing& outgoing) const {
  return {Errc::kTimeout, text("channel ", options_.name, ": the deadline passed before a message of ", outgoing.credit_bytes,
                               " bytes was received; is the receiver alive, and are the credits enough?")};
}

/// The credit comes back with the receiver's answer to the cancellation: until then it may hold the message.
void Outbox::expire(Outgoing& outgoing) {
  if (!outgoing.complete(fail(overdue(outgoing)))) return;
  const std::lock_guard lock(mutex_);
  std::erase_if(waiting_, [&](const OutgoingPtr& one) { return one.get() == &outgoing; });
  if (ended_ || !open_.contains(outgoing.sequence) || open_[outgoing.sequence].get() != &outgoing) return;
  node_.post([self = shared_from_this(), sequence = outgoing.sequence, why = overdue(outgoing)] {
    if (!self->peer_.lost) self->node_.control(self->peer_, self->number_, sequence, {.kind = Kind::kCancel, .why = why});
  });
}

void Outbox::sweep() {
  std::vector<OutgoingPtr> late;
  {
    const std::lock_guard lock(mutex_);
    const TimePoint now = node_.services().clock->now();
    const auto look = [&](const OutgoingPtr& one) {
      if (!one->done() && one->deadline().time() <= now) late.push_back(one);
    };
    for (const auto& [sequence, one] : open_) look(one);
    for (const auto& one : waiting_) look(one);
  }
  for (const auto& one : late) expire(*one);
}

void Outbox::end(const Error& why, bool tell) {
  std::vector<OutgoingPtr> pending;
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    ended_ = why;
    for (auto& [sequence, one] : open_) pending.push_back(std::move(one));
    pending.insert(pending.end(), waiting_.begin(), waiting_.end());
    open_.clear();
    waiting_.clear();
    open_bytes_ = 0;
    node_.post([self = shared_from_this(), why, tell, pending] {
      for (const auto& one : pending) {
        if (one->parts_in_flight == 0) one->message.tensors.clear();
      }
      if (tell && !self->peer_.lost) self->node_.control(self->peer_, self->number_, 0, {.kind = Kind::kEndOfSender, .why = why});
      self->node_.forget(*self);
    });
  }
  for (const auto& one : pending) (void)one->complete(fail(why));
}

/// Bounded: a peer that does not let go keeps the bytes in quarantine, not the caller.
void Outbox::wait_idle() {
  std::unique_lock lock(mutex_);
  (void)idle_.wait(lock, node_.services().clock->after(kClosePatience), [this] { return parts_ == 0; });
}

}  // namespace troupe::transport::ucx
