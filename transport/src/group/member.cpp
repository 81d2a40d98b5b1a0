#include "member.hpp"

#include <utility>

#include <troupe/base/text.hpp>

namespace troupe::transport {

/// How many loans are out.
struct Member::Books {
  explicit Books(std::shared_ptr<Clock> c) : clock(std::move(c)), returned(*clock) {}

  const std::shared_ptr<Clock> clock;
  std::mutex mutex;
  Condition returned;
  int loans = 0;
};

class Member::Loan {
 public:
  Loan(std::shared_ptr<Books> books, std::shared_ptr<const void> keep) : books_(std::move(books)), keep_(std::move(keep)) {
    std::lock_guard lock(books_->mutex);
    ++books_->loans;
  }
  ~Loan() {
    keep_ = nullptr;
    std::lock_guard lock(books_->mutex);
    if (--books_->loans == 0) books_->returned.notify_all();
  }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

 private:
  std::shared_ptr<Books> books_;
  std::shared_ptr<const void> keep_;
};

Member::Member(const Services& services, GroupEnds ends)
    : services_(services), ends_(std::move(ends)), books_(std::make_shared<Books>(services_.clock)) {}

void Member::watch_peers() {
  for (const auto& receiver : ends_.from) {
    if (!receiver) continue;
    receiver->on_end([weak = weak_from_this()](const Error& why) {
      // kClosed: the peer left after its last collective. Whoever needs it again will find out.
      if (why.code == Errc::kClosed) return;
      if (auto member = weak.lock()) member->end(why);
    });
  }
}

void Member::end(Error why) {
  {
    std::lock_guard lock(mutex_);
    if (ended_) return;
    ended_ = why;
  }
  // What a peer did wrong with the call is kMismatch or kTimeout on all; anything else is a lost member.
  if (why.code != Errc::kMismatch && why.code != Errc::kTimeout && why.code != Errc::kPeerLost) {
    why = caused_by(std::move(why), Errc::kPeerLost, text("group ", name(), ": member ", rank(), " failed"));
  }
  close_ends(why);
}

void Member::leave() {
  close_ends({Errc::kClosed, text("group ", name(), ": member ", rank(), " has left")});
}

void Member::close_ends(const Error& why) {
  for (const auto& sender : ends_.to) {
    if (sender) sender->end(why);
  }
  for (const auto& receiver : ends_.from) {
    if (receiver) receiver->end(why);
  }
}

std::optional<Error> Member::ended() const {
  std::lock_guard lock(mutex_);
  return ended_;
}

std::shared_ptr<const void> Member::lend(std::shared_ptr<const void> keep) {
  return std::make_shared<Loan>(books_, std::move(keep));
}

// Readers only copy or add what they hold, they wait for nobody meanwhile: so this is bounded, and a
// deadline would only let a caller free bytes that are being read.
void Member::wait_for_returns() {
  std::unique_lock lock(books_->mutex);
  (void)books_->returned.wait(lock, Deadline::never(), [this] { return books_->loans == 0; });
}

}  // namespace troupe::transport
