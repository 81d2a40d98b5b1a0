#include "parcel.hpp"

#include <utility>

#include <troupe/base/text.hpp>

#include "link.hpp"
#include "memory.hpp"

namespace troupe::transport::inproc {
namespace {

/// Keeps a parcel's tensors lent while the receiver reads them in place.
class Reference {
 public:
  Reference(std::shared_ptr<Link> link, std::shared_ptr<Parcel> parcel)
      : link_(std::move(link)), parcel_(std::move(parcel)) {}
  ~Reference() { link_->release(*parcel_); }
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;

 private:
  std::shared_ptr<Link> link_;
  std::shared_ptr<Parcel> parcel_;
};

std::vector<TensorDesc> descs_of(const Message& message) {
  std::vector<TensorDesc> descs;
  descs.reserve(message.tensors.size());
  for (const Tensor& tensor : message.tensors) descs.push_back(tensor.desc);
  return descs;
}

std::int64_t bytes_of(const std::vector<Tensor>& tensors) {
  std::int64_t bytes = 0;
  for (const Tensor& tensor : tensors) bytes += tensor.desc.bytes();
  return bytes;
}

}  // namespace

Parcel::Parcel(const Services& services, std::shared_ptr<Link> link, Message message, Deadline deadline)
    : State(services, deadline),
      link_(std::move(link)),
      message_(std::move(message)),
      descs_(descs_of(message_)),
      credit_bytes_(message_.bytes()) {}

Operation Parcel::accept(std::vector<Tensor> targets, Deadline deadline) {
  return link_->accept(shared_from_this(), targets, deadline);
}

Result<std::vector<Tensor>> Parcel::accept_by_reference() { return link_->refer(shared_from_this()); }

void Parcel::reject(Error why) { link_->reject(*this, std::move(why)); }

void Parcel::expire() { link_->expire(*this); }

// ---- What the link does with one parcel

Result<void> Link::check_targets(const Parcel& parcel, const std::vector<Tensor>& targets) const {
  const auto refuse = [&](const auto&... why) {
    return fail(Errc::kMismatch, text("channel ", options_.name, ", message ", parcel.sequence_, ": ", why...));
  };
  if (targets.size() != parcel.descs_.size()) {
    return refuse("it has ", parcel.descs_.size(), " tensors, the receiver gave ", targets.size(), " targets");
  }
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const TensorDesc &sent = parcel.descs_[i], &wanted = targets[i].desc;
    if (sent.dtype != wanted.dtype || sent.shape != wanted.shape) {
      return refuse("tensor ", i, " is ", sent.to_string(), ", the receiver's target is ", wanted.to_string(),
                    "; allocate the target from tensors()");
    }
    if (auto valid = validate_host(targets[i]); !valid) return valid;
  }
  return {};
}

/// Claims a held parcel for reading its lent bytes; why not, otherwise.
Result<void> Link::claim(Parcel& parcel, Stage stage) {
  std::lock_guard lock(mutex_);
  if (ended_) return fail(*ended_);
  if (parcel.stage_ != Stage::kHeld) return fail(overdue(parcel));
  parcel.stage_ = stage;
  if (stage == Stage::kPulling) ++pulls_;
  return {};
}

// TRN-1: the pull runs in the thread that accepts, so it has ended when this returns.
Operation Link::accept(const std::shared_ptr<Parcel>& parcel, const std::vector<Tensor>& targets, Deadline deadline) {
  const auto refuse = [&](const Error& why) {
    reject(*parcel, why);
    return ended_operation(services_, fail(why));
  };
  if (auto fits = check_targets(*parcel, targets); !fits) return refuse(fits.error());
  const Deadline soonest = std::min(deadline, parcel->deadline());
  if (!soonest.is_never() && soonest.time() <= services_.clock->now()) return refuse(overdue(*parcel));
  if (auto claimed = claim(*parcel, Stage::kPulling); !claimed) return ended_operation(services_, fail(claimed.error()));
  return ended_operation(services_, pull(*parcel, targets));
}

Result<Transferred> Link::pull(Parcel& parcel, const std::vector<Tensor>& targets) {
  const std::vector<Tensor>& lent = parcel.message_.tensors;
  Result<Transferred> result = Transferred{bytes_of(lent), "inproc", 1};
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (auto copied = copy_tensor(targets[i], lent[i], *services_.counters); !copied) result = fail(copied.error());
  }
  std::vector<Tensor> returned;
  Lock lock(mutex_);
  returned = retire(parcel);
  lock.unlock();
  // The sender gave up during the pull and may have written into the bytes: they count as not received.
  if (!parcel.complete(result)) result = fail(overdue(parcel));
  lock.lock();
  --pulls_;
  idle_.notify_all();
  return result;  // what was lent goes last, unlocked: its owner may close this very channel
}

Result<std::vector<Tensor>> Link::refer(const std::shared_ptr<Parcel>& parcel) {
  if (auto claimed = claim(*parcel, Stage::kReferenced); !claimed) return fail(claimed.error());
  const auto reference = std::make_shared<Reference>(shared_from_this(), parcel);
  std::vector<Tensor> tensors = parcel->message_.tensors;
  for (Tensor& tensor : tensors) tensor.keep = reference;
  services_.counters->referenced_bytes.fetch_add(bytes_of(tensors), std::memory_order_relaxed);
  return tensors;
}

void Link::release(Parcel& parcel) {
  Lock lock(mutex_);
  const std::vector<Tensor> lent = retire(parcel);
  lock.unlock();
  parcel.complete(Transferred{bytes_of(lent), "reference", 0});
}

void Link::reject(Parcel& parcel, Error why) {
  Lock lock(mutex_);
  const std::vector<Tensor> lent = retire(parcel);
  lock.unlock();
  parcel.complete(fail(std::move(why)));
}

void Link::expire(Parcel& parcel) {
  Lock lock(mutex_);
  Error why = overdue(parcel);
  std::vector<Tensor> lent;
  // TRN-2: bytes that a peer reads right now stay lent until it has finished.
  if (parcel.stage_ != Stage::kPulling && parcel.stage_ != Stage::kReferenced) lent = retire(parcel);
  lock.unlock();
  parcel.complete(fail(std::move(why)));
}

Error Link::overdue(const Parcel& parcel) const {
  return {Errc::kTimeout, text("channel ", options_.name, ": the deadline passed before a message of ", parcel.credit_bytes_,
                               " bytes was received; is the receiver alive, and are the credits enough?")};
}

/// Takes a parcel out of the link and gives its credit back. The caller holds a pointer to it, and drops
/// what it lent when it has left the lock.
std::vector<Tensor> Link::retire(Parcel& parcel) {
  const auto is_it = [&](const ParcelPtr& other) { return other.get() == &parcel; };
  const Stage stage = std::exchange(parcel.stage_, Stage::kDone);
  if (stage == Stage::kDone) return {};
  if (stage == Stage::kWaiting) {
    std::erase_if(waiting_, is_it);
  } else {
    if (stage == Stage::kAnnounced) {
      std::erase_if(announced_, is_it);
    } else {
      std::swap(held_[parcel.slot_], held_.back());
      held_[parcel.slot_]->slot_ = parcel.slot_;
      held_.pop_back();
    }
    --open_messages_;
    open_bytes_ -= parcel.credit_bytes_;
  }
  if (!ended_) announce_waiting();  // the first in line may fit now
  return std::exchange(parcel.message_.tensors, {});
}

}  // namespace troupe::transport::inproc
