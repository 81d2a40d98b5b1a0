// The receiver's side of an inbox: waiting, handlers, the end.
#include <utility>

#include <troupe/base/text.hpp>

#include "inbox.hpp"

namespace troupe::transport::ucx {

constexpr Duration kClosePatience = std::chrono::seconds(5);

Result<Incoming> Inbox::receive(Deadline deadline) {
  std::unique_lock lock(mutex_);
  const bool in_time = arrived_.wait(lock, deadline, [this] { return ended_ || !ready_.empty(); });
  if (ended_) return fail(*ended_);
  if (!in_time) return fail(Errc::kTimeout, text("channel ", options_.name, ": no message came before the deadline; is the sender alive?"));
  return Incoming(take_next());
}

Inbox::ParcelPtr Inbox::take_next() {
  ParcelPtr parcel = std::move(ready_.front());
  ready_.pop_front();
  parcel->number = next_number_++;
  return parcel;
}

void Inbox::on_message(std::function<void(Incoming)> handler) {
  std::shared_ptr<const Handler> next = std::make_shared<const Handler>(std::move(handler));
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  std::swap(handler_, next);
  post_delivery();
}

void Inbox::post_delivery() {
  if (!handler_ || delivery_posted_ || ready_.empty()) return;
  delivery_posted_ = node_.services().executor->post([weak = weak_from_this()] {
    if (auto inbox = weak.lock()) inbox->deliver();
  });
}

void Inbox::deliver() {
  std::unique_lock lock(mutex_);
  delivery_posted_ = false;
  if (ended_ || ready_.empty() || !handler_) return;
  Incoming incoming(take_next());
  std::shared_ptr<const Handler> handler = handler_;
  delivering_ = std::this_thread::get_id();
  lock.unlock();
  (*handler)(std::move(incoming));   // SUP-7: on the executor, without the lock
  handler = nullptr;
  lock.lock();
  delivering_ = {};
  idle_.notify_all();
  post_delivery();
}

void Inbox::on_end(std::function<void(const Error&)> handler) {
  std::unique_lock lock(mutex_);
  if (!ended_) {
    std::swap(end_handler_, handler);
    return;
  }
  const Error why = *ended_;
  lock.unlock();
  node_.services().executor->post([handler = std::move(handler), why] { handler(why); });
}

void Inbox::end(const Error& why, bool tell) {
  std::deque<ParcelPtr> dropped;
  std::shared_ptr<const Handler> handler;
  std::function<void(const Error&)> end_handler;
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    ended_ = why;
    std::swap(dropped, ready_);
    std::swap(handler, handler_);
    std::swap(end_handler, end_handler_);
    arrived_.notify_all();
    node_.post([self = shared_from_this(), why, tell] {
      for (const auto& [sequence, parcel] : std::exchange(self->messages_, {})) {
        if (parcel->is_pulling) continue;   // ends by itself, and is answered
        parcel->is_over = true;
        self->release(*parcel);
      }
      if (tell && !self->peer_.lost) self->node_.control(self->peer_, self->number_, 0, {.kind = Kind::kEndOfReceiver, .why = why});
      self->node_.forget(*self);
    });
  }
  if (end_handler) node_.services().executor->post([end_handler = std::move(end_handler), why] { end_handler(why); });
}

bool Inbox::is_idle() const {
  const bool handling = delivering_ != std::thread::id{} && delivering_ != std::this_thread::get_id();
  return pulls_ == 0 && !handling;
}

/// POOL-7, bounded: a peer that stops in a pull is ended by its deadline or the control plane.
void Inbox::wait_idle() {
  std::unique_lock lock(mutex_);
  (void)idle_.wait(lock, node_.services().clock->after(kClosePatience), [this] { return is_idle(); });
}

}  // namespace troupe::transport::ucx
