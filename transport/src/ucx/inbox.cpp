#include "inbox.hpp"

#include <algorithm>
#include <utility>

#include <troupe/base/text.hpp>

#include "memory.hpp"

namespace troupe::transport::ucx {

Operation Parcel::accept(std::vector<Tensor> targets, Deadline deadline) { return inbox_->accept(shared_from_this(), std::move(targets), deadline); }
Result<std::vector<Tensor>> Parcel::accept_by_reference() { return fail(Errc::kUnavailable, "another process's memory can't be taken by reference; accept it into memory of this process"); }
void Parcel::reject(Error why) { inbox_->reject(shared_from_this(), std::move(why)); }

Inbox::Inbox(Node& node, Peer& peer, std::uint64_t number, ChannelOptions options)
    : node_(node), peer_(peer), number_(number), options_(std::move(options)), arrived_(*node.services().clock), idle_(*node.services().clock) {}

/// Sizes of the parts that an announcement asks for, in their order.
static std::vector<std::int64_t> part_sizes(const Announcement& announcement, const Packing& packing) {
  std::vector<std::int64_t> out;
  if (announcement.is_inline) return out;
  if (packing.bytes > 0) out.push_back(packing.bytes);
  for (std::size_t i = 0; i < announcement.tensors.size(); ++i) {
    if (announcement.alone[i] != 0) out.push_back(announcement.tensors[i].bytes());
  }
  return out;
}

// ---- What arrives, on the progress thread

Inbox::ParcelPtr Inbox::at(std::uint64_t sequence) {
  ParcelPtr& found = messages_[sequence];
  if (!found) {
    found = std::make_shared<Parcel>(shared_from_this());
    found->wire_sequence = sequence;
  }
  return found;
}

void Inbox::announced(std::uint64_t sequence, std::span<const std::byte> bytes) {
  auto read = read_announcement(bytes);
  if (!read) return node_.fail_peer(peer_, read.error());   // what follows could not be told apart any more
  const ParcelPtr parcel = at(sequence);
  if (sequence < next_wire_ || parcel->is_announced) return node_.fail_peer(peer_, {Errc::kBadData, text("message ", sequence, " came twice")});
  parcel->is_announced = true;
  parcel->announcement = std::move(*read);
  parcel->packing = packing_of(parcel->announcement.tensors, parcel->announcement.alone);
  parcel->sizes = part_sizes(parcel->announcement, parcel->packing);
  deliver_ready();
}

void Inbox::offered(const Head& head, void* descriptor, std::size_t bytes) {
  if (head.sequence < next_wire_) return peer_.worker->release(descriptor);   // of a message that was taken back
  const auto added = at(head.sequence)->parts.emplace(head.part, Parcel::Part{descriptor, static_cast<std::int64_t>(bytes)}).second;
  if (!added) {
    peer_.worker->release(descriptor);
    return node_.fail_peer(peer_, {Errc::kBadData, text("part ", head.part, " of message ", head.sequence, " came twice")});
  }
  deliver_ready();
}

std::optional<Error> Inbox::broken(const Parcel& parcel) const {
  const auto& sizes = parcel.sizes;
  for (const auto& [index, part] : parcel.parts) {
    if (index < sizes.size() && sizes[index] == part.bytes) continue;
    return Error{Errc::kBadData, text("channel ", options_.name, ": part ", index, " of message ", parcel.wire_sequence, " has ", part.bytes, " bytes, its description says ",
                                      index < sizes.size() ? sizes[index] : 0)};
  }
  return std::nullopt;
}

/// In the order of their numbers, each when all of it can be pulled: lanes may bring them in another order.
void Inbox::deliver_ready() {
  for (;;) {
    const auto found = messages_.find(next_wire_);
    if (found == messages_.end() || !found->second->is_announced) return;
    const ParcelPtr parcel = found->second;
    if (auto why = broken(*parcel)) return node_.fail_peer(peer_, *why);
    if (parcel->parts.size() < parcel->sizes.size()) return;
    ++next_wire_;
    if (parcel->is_over) {
      release(*parcel);
      messages_.erase(parcel->wire_sequence);
      continue;
    }
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    ready_.push_back(parcel);
    arrived_.notify_all();
    post_delivery();
  }
}

void Inbox::cancelled(std::uint64_t sequence, const Error& why) {
  const auto found = messages_.find(sequence);
  if (found == messages_.end()) return;
  const ParcelPtr parcel = found->second;
  if (parcel->is_pulling) return;   // it ends by itself
  {
    const std::lock_guard lock(mutex_);
    std::erase(ready_, parcel);
  }
  if (sequence < next_wire_) {
    answer(*parcel, {.kind = Kind::kNack, .why = why});
  } else {   // parts may still come: deliver_ready() lets it go
    parcel->is_over = true;
    node_.control(peer_, number_, sequence, {.kind = Kind::kNack, .why = why});
  }
}

void Inbox::release(Parcel& parcel) {
  for (auto& [index, part] : parcel.parts) peer_.worker->release(part.descriptor);
  parcel.parts.clear();
}

void Inbox::answer(Parcel& parcel, const Control& control) {
  if (std::exchange(parcel.is_over, true)) return;
  release(parcel);
  messages_.erase(parcel.wire_sequence);
  if (!peer_.lost) node_.control(peer_, number_, parcel.wire_sequence, control);
}

// ---- Pulling

/// One accepted message: the receiver's operation, and where the bytes go.
struct Inbox::Pull final : Operation::State {
  Pull(const Services& services, Deadline deadline, ParcelPtr p, std::vector<Tensor> t) : State(services, deadline), parcel(std::move(p)), targets(std::move(t)) {}
  ParcelPtr parcel;
  std::vector<Tensor> targets;                      ///< Lent until UCX has written them, whatever became of the operation (TRN-2).
  std::vector<std::shared_ptr<std::byte>> staged;   ///< By part; null: straight into the target.
  int parts_left = 0;
  Result<void> result = {};
};

Result<void> Inbox::check_targets(const Parcel& parcel, const std::vector<Tensor>& targets) const {
  const auto refuse = [&](const auto&... why) { return fail(Errc::kMismatch, text("channel ", options_.name, ", message ", parcel.number, ": ", why...)); };
  const auto& sent = parcel.announcement.tensors;
  if (targets.size() != sent.size()) return refuse("it has ", sent.size(), " tensors, the receiver gave ", targets.size(), " targets");
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (sent[i].dtype != targets[i].desc.dtype || sent[i].shape != targets[i].desc.shape) {
      return refuse("tensor ", i, " is ", sent[i].to_string(), ", the receiver's target is ", targets[i].desc.to_string(), "; allocate the target from tensors()");
    }
    if (auto valid = validate_host(targets[i]); !valid) return valid;
  }
  return {};
}

Operation Inbox::accept(const ParcelPtr& parcel, std::vector<Tensor> targets, Deadline deadline) {
  if (auto fits = check_targets(*parcel, targets); !fits) {
    reject(parcel, fits.error());
    return ended_operation(node_.services(), fail(fits.error()));
  }
  auto pull = std::make_shared<Pull>(node_.services(), deadline, parcel, std::move(targets));
  std::unique_lock lock(mutex_);
  if (ended_) {
    const Error why = *ended_;
    lock.unlock();
    return ended_operation(node_.services(), fail(why));
  }
  ++pulls_;
  node_.post([self = shared_from_this(), pull] { self->start(pull); });
  lock.unlock();
  return Operation(std::move(pull));
}

void Inbox::start(const std::shared_ptr<Pull>& pull) {
  Parcel& parcel = *pull->parcel;
  const auto refuse = [&](Error why) {
    pull->result = fail(std::move(why));
    finish(pull);
  };
  if (peer_.lost) return refuse(*peer_.lost);
  if (parcel.is_over) return refuse({Errc::kTimeout, text("channel ", options_.name, ": the sender took message ", parcel.number, " back: its deadline passed")});
  if (pull->deadline().time() <= node_.services().clock->now()) return refuse({Errc::kTimeout, text("channel ", options_.name, ": the deadline of accept() had passed")});
  const Announcement& announcement = parcel.announcement;
  std::vector<void*> into;
  if (!announcement.is_inline && parcel.packing.bytes > 0) into.push_back(nullptr);
  for (std::size_t i = 0; i < announcement.tensors.size(); ++i) {
    if (announcement.alone[i] != 0) into.push_back(pull->targets[i].desc.contiguous() ? pull->targets[i].data : nullptr);
  }
  pull->staged.resize(into.size());
  for (std::size_t part = 0; part < into.size(); ++part) {
    if (into[part] != nullptr) continue;
    auto memory = allocate(parcel.parts[part].bytes);
    if (!memory) return refuse(memory.error());
    pull->staged[part] = std::move(*memory);
    into[part] = pull->staged[part].get();
  }
  parcel.is_pulling = true;
  pull->parts_left = static_cast<int>(into.size());
  if (into.empty()) return finish(pull);
  const auto parts = std::exchange(parcel.parts, {});   // UCX's now
  for (const auto& [index, part] : parts) {
    peer_.worker->pull(part.descriptor, into[index], static_cast<std::size_t>(part.bytes), [self = shared_from_this(), pull](ucs_status_t status) { self->part_done(pull, status); });
  }
}

void Inbox::part_done(const std::shared_ptr<Pull>& pull, ucs_status_t status) {
  if (status != UCS_OK && pull->result) {
    pull->result = fail(Errc::kPeerLost, text("channel ", options_.name, ": the peer was lost during a pull: ", ucs_status_string(status)));
  }
  if (--pull->parts_left == 0) finish(pull);
}

void Inbox::finish(const std::shared_ptr<Pull>& pull) {
  Parcel& parcel = *pull->parcel;
  const Announcement& announcement = parcel.announcement;
  TransferCounters& counters = *node_.services().counters;
  const bool is_large = !pull->staged.empty();
  const Via via = is_large ? peer_.large : peer_.small;
  std::int64_t copies = via == Via::kCma ? 1 : 2, bytes = 0;
  if (pull->result) {
    const Packing& packing = parcel.packing;
    const std::byte* const packed = announcement.is_inline ? announcement.packed.data() : packing.bytes > 0 ? pull->staged[0].get() : nullptr;
    std::size_t part = !announcement.is_inline && packing.bytes > 0 ? 1 : 0;
    bool is_staged = false;
    for (std::size_t i = 0; i < announcement.tensors.size(); ++i) {
      bytes += announcement.tensors[i].bytes();
      const std::byte* const from = announcement.alone[i] != 0 ? pull->staged[part++].get() : packed + packing.offsets[i];
      if (from == nullptr || announcement.tensors[i].bytes() == 0) continue;
      is_staged = true;
      // NOLINTNEXTLINE: the primitive does not write to its source
      const Tensor source{const_cast<std::byte*>(from), announcement.tensors[i]};
      if (auto copied = copy_tensor(pull->targets[i], source, counters); !copied) pull->result = copied;
    }
    counters.copied_bytes.fetch_add(copies * bytes, std::memory_order_relaxed);   // UCX's own
    if (packing.bytes > 0) copies += 1;   // the sender's packing
    if (is_staged) copies += 1;
  }
  if (pull->result) {
    answer(parcel, {.kind = Kind::kAck, .copies = copies, .via = static_cast<std::uint8_t>(via)});
    (void)pull->complete(Transferred{bytes, to_string(via), copies});
  } else {
    answer(parcel, {.kind = Kind::kNack, .why = pull->result.error()});
    (void)pull->complete(fail(pull->result.error()));
  }
  pull->targets.clear();
  const std::lock_guard lock(mutex_);
  --pulls_;
  idle_.notify_all();
}

void Inbox::reject(const ParcelPtr& parcel, Error why) {
  node_.post([self = shared_from_this(), parcel, why = std::move(why)] {
    if (!parcel->is_pulling) self->answer(*parcel, {.kind = Kind::kNack, .why = why});
  });
}

}  // namespace troupe::transport::ucx
