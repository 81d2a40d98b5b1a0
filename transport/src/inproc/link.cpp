#include "link.hpp"

#include <algorithm>
#include <utility>

#include <troupe/base/text.hpp>

#include "memory.hpp"

namespace troupe::transport::inproc {

Link::Link(const Services& services, ChannelOptions options)
    : services_(services), options_(std::move(options)), arrived_(*services_.clock), idle_(*services_.clock) {}

// ---- The sending end

Operation Link::send(Message message, Deadline deadline) {
  for (const Tensor& tensor : message.tensors) {
    if (auto valid = validate_host(tensor); !valid) return ended_operation(services_, fail(valid.error()));
  }
  auto parcel = std::make_shared<Parcel>(services_, shared_from_this(), std::move(message), deadline);
  Lock lock(mutex_);
  if (ended_) {
    parcel->stage_ = Stage::kDone;
    Error why = *ended_;
    lock.unlock();
    return ended_operation(services_, fail(std::move(why)));
  }
  watch(deadline);
  if (waiting_.empty() && fits(*parcel)) {
    announce(parcel);
  } else {
    waiting_.push_back(parcel);
  }
  lock.unlock();
  return Operation(std::move(parcel));
}

bool Link::writable() const {
  std::lock_guard lock(mutex_);
  return !ended_ && waiting_.empty() && open_messages_ < options_.credit_messages && open_bytes_ < options_.credit_bytes;
}

bool Link::fits(const Parcel& parcel) const {
  if (open_messages_ == 0) return true;  // larger than all credit: alone
  return open_messages_ < options_.credit_messages && open_bytes_ + parcel.credit_bytes_ <= options_.credit_bytes;
}

void Link::announce(ParcelPtr parcel) {
  parcel->stage_ = Stage::kAnnounced;
  ++open_messages_;
  open_bytes_ += parcel->credit_bytes_;
  services_.counters->messages.fetch_add(1, std::memory_order_relaxed);
  announced_.push_back(std::move(parcel));
  arrived_.notify_all();
  post_delivery();
}

void Link::announce_waiting() {
  while (!waiting_.empty() && fits(*waiting_.front())) {
    announce(std::move(waiting_.front()));
    waiting_.pop_front();
  }
}

// ---- The receiving end

Result<Incoming> Link::receive(Deadline deadline) {
  Lock lock(mutex_);
  const bool in_time = arrived_.wait(lock, deadline, [this] { return ended_ || !announced_.empty(); });
  if (ended_) return fail(*ended_);
  if (!in_time) {
    return fail(Errc::kTimeout, text("channel ", options_.name, ": no message came before the deadline; is the sender alive?"));
  }
  return Incoming(take_next());
}

Link::ParcelPtr Link::take_next() {
  ParcelPtr parcel = std::move(announced_.front());
  announced_.pop_front();
  parcel->sequence_ = next_sequence_++;
  hold(parcel);
  return parcel;
}

void Link::hold(const ParcelPtr& parcel) {
  parcel->stage_ = Stage::kHeld;
  parcel->slot_ = held_.size();
  held_.push_back(parcel);
}

void Link::on_message(std::function<void(Incoming)> handler) {
  std::shared_ptr<const Handler> next = std::make_shared<const Handler>(std::move(handler));
  std::lock_guard lock(mutex_);
  if (ended_) return;
  std::swap(handler_, next);
  post_delivery();
}

void Link::post_delivery() {
  if (!handler_ || delivery_posted_ || announced_.empty()) return;
  delivery_posted_ = services_.executor->post([weak = weak_from_this()] {
    if (auto link = weak.lock()) link->deliver();
  });
}

void Link::deliver() {
  Lock lock(mutex_);
  delivery_posted_ = false;
  if (ended_ || announced_.empty() || !handler_) return;
  Incoming incoming(take_next());
  std::shared_ptr<const Handler> handler = handler_;
  delivering_ = std::this_thread::get_id();
  lock.unlock();
  (*handler)(std::move(incoming));
  handler = nullptr;
  lock.lock();
  delivering_ = {};
  idle_.notify_all();
  post_delivery();
}

void Link::on_end(std::function<void(const Error&)> handler) {
  std::unique_lock lock(mutex_);
  if (!ended_) {
    std::swap(end_handler_, handler);
    return;
  }
  Error why = *ended_;
  lock.unlock();
  services_.executor->post([handler = std::move(handler), why = std::move(why)] { handler(why); });
}

// ---- Deadlines and the end

// One timer per channel, for the earliest deadline it has seen: later ones are looked at when it runs,
// so that a stream of quick operations does not touch the executor (wait() watches its own deadline).
void Link::watch(Deadline deadline) {
  if (deadline >= watched_) return;
  if (!watched_.is_never()) services_.executor->cancel(timer_);
  watched_ = deadline;
  timer_ = services_.executor->post_at(deadline, [weak = weak_from_this()] {
    if (auto link = weak.lock()) link->sweep();
  });
}

template <class Visit>
void Link::for_each_open(Visit visit) {
  for (const ParcelPtr& parcel : waiting_) visit(parcel);
  for (const ParcelPtr& parcel : announced_) visit(parcel);
  for (const ParcelPtr& parcel : held_) visit(parcel);
}

void Link::sweep() {
  std::vector<ParcelPtr> overdue;
  Deadline next = Deadline::never();
  {
    Lock lock(mutex_);
    const TimePoint now = services_.clock->now();
    watched_ = Deadline::never();
    for_each_open([&](const ParcelPtr& parcel) {
      if (parcel->done()) return;  // overdue already, and still being read
      if (parcel->deadline().time() <= now) {
        overdue.push_back(parcel);
      } else {
        next = std::min(next, parcel->deadline());
      }
    });
    watch(next);
  }
  for (const ParcelPtr& parcel : overdue) expire(*parcel);
}

void Link::end(Error why) {
  std::vector<ParcelPtr> pending;
  std::vector<std::vector<Tensor>> lent;
  std::shared_ptr<const Handler> handler;
  std::function<void(const Error&)> end_handler;
  {
    Lock lock(mutex_);
    if (ended_) return;
    ended_ = why;
    for_each_open([&](const ParcelPtr& parcel) {
      if (parcel->stage_ != Stage::kPulling) pending.push_back(parcel);
    });
    for (const ParcelPtr& parcel : pending) {
      if (parcel->stage_ != Stage::kReferenced) lent.push_back(retire(*parcel));  // else: held until released
    }
    if (!watched_.is_never()) services_.executor->cancel(timer_);
    std::swap(handler, handler_);
    std::swap(end_handler, end_handler_);
    arrived_.notify_all();
  }
  for (const ParcelPtr& parcel : pending) parcel->complete(fail(why));
  if (end_handler) {
    services_.executor->post([end_handler = std::move(end_handler), why = std::move(why)] { end_handler(why); });
  }
}

// POOL-7: returns when no thread copies from lent bytes. A pull is one memcpy of ours, so this is bounded.
void Link::wait_idle() {
  Lock lock(mutex_);
  (void)idle_.wait(lock, Deadline::never(), [this] {
    const bool handling = delivering_ != std::thread::id{} && delivering_ != std::this_thread::get_id();
    return pulls_ == 0 && !handling;
  });
}

}  // namespace troupe::transport::inproc
