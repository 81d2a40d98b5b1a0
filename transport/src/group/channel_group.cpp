#include "channel_group.hpp"

#include <algorithm>
#include <utility>

#include <troupe/base/text.hpp>

#include "memory.hpp"
#include "reduce.hpp"

namespace troupe::transport {
namespace {

// How long a member that leaves waits for peers that are still receiving its last messages.
constexpr Duration kLinger = std::chrono::seconds(1);

std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

/// `count` elements of a contiguous tensor from element `start` on, as one dim.
Tensor slice(const Tensor& tensor, std::int64_t start, std::int64_t count) {
  auto* data = static_cast<std::byte*>(tensor.data);
  if (data != nullptr) data += start * size_of(tensor.desc.dtype);
  return {data, {tensor.desc.dtype, {count}, {}, tensor.desc.device}, tensor.keep, tensor.ready_event};
}

Tensor flatten(const Tensor& tensor) { return slice(tensor, 0, tensor.desc.elements()); }

std::vector<std::int64_t> counts(std::span<const Tensor> tensors) {
  std::vector<std::int64_t> elements;
  elements.reserve(tensors.size());
  for (const Tensor& tensor : tensors) elements.push_back(tensor.desc.elements());
  return elements;
}

bool is_meta(const Tensor& tensor) { return tensor.desc.device.kind == MemoryKind::kMeta; }

std::uint8_t first_phase(std::span<const Tensor> tensors) { return !tensors.empty() && is_meta(tensors[0]) ? kShapesOnly : kRendezvous; }

/// What one member can see of its own arguments: contiguous memory of one dtype, `size` tensors, all of the host or
/// all without data as `phase` says.
Result<void> check(std::span<const Tensor> tensors, DType dtype, std::size_t size, std::uint8_t phase) {
  if (tensors.size() != size) {
    return fail(Errc::kInvalidArgument, text(tensors.size(), " tensors for a group of ", size, " members; give one per member"));
  }
  for (const Tensor& tensor : tensors) {
    if (phase == kShapesOnly && !is_meta(tensor)) {
      return fail(Errc::kInvalidArgument, text("tensor ", tensor.desc.to_string(), " has data, others of the call have none"));
    }
    if (auto valid = phase == kShapesOnly ? Result<void>{} : validate_host(tensor); !valid) return valid;
    if (tensor.desc.dtype != dtype) {
      return fail(Errc::kInvalidArgument, text("tensors of ", to_string(dtype), " and ", to_string(tensor.desc.dtype), " in one call"));
    }
    if (!tensor.desc.contiguous()) {
      return fail(Errc::kInvalidArgument, text("tensor ", tensor.desc.to_string(), " is not contiguous; collectives need contiguous memory"));
    }
  }
  return {};
}

Result<void> check_reducible(DType dtype) {
  if (reducible(dtype)) return {};
  return fail(Errc::kInvalidArgument, text(to_string(dtype), " can be moved but not reduced; reduce f64, f32, bf16, f16, i64 or i32"));
}

/// Every member hears every other's header, and no byte moves.
Result<void> only_meet(Exchange& exchange, int size, int rank) {
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    if (auto sent = exchange.offer(peer, {nullptr, {DType::kU8, {0}}}); !sent) return sent;
  }
  return exchange.meet();
}

Result<void> both(Result<void> first, const Result<void>& second) { return first ? second : first; }

}  // namespace

ChannelGroup::ChannelGroup(const Context& context, GroupEnds ends)
    : member_(std::make_shared<Member>(Services(context), std::move(ends))) {
  member_->watch_peers();
}

ChannelGroup::~ChannelGroup() {
  if (!member_->ended()) {
    const Deadline until = loose_.empty() ? Deadline::never() : member_->services().clock->after(kLinger);
    for (const Operation& sent : loose_) (void)sent.wait_until(until);
  }
  member_->leave();
}

GroupTraffic ChannelGroup::traffic() const {
  std::lock_guard lock(mutex_);
  return traffic_;
}

void ChannelGroup::begin(std::uint64_t ticket, Deadline deadline) {
  position_ = {ticket, 0};
  deadline_ = deadline;
}

void ChannelGroup::abort(const Error& why) {
  member_->end(caused_by(why, Errc::kPeerLost, text("group ", name(), ": this generation was ended at member ", rank())));
}

Error ChannelGroup::refuse_later(const Error& first) {
  // Members that disagree all say kMismatch, also the one that comes when the others have gone (TRN-8).
  if (first.code == Errc::kMismatch && !failed_) return first;
  return caused_by(first, Errc::kPeerLost, text("group ", name(), ": this generation has ended; its owner must build the next one"));
}

Result<void> ChannelGroup::run(Header header, const Result<void>& valid, const Body& body) {
  header.position = position_;
  ++position_.index;
  std::optional<Error> failure;
  GroupTraffic traffic;
  const Deadline deadline = deadline_ ? *deadline_ : member_->services().clock->after(kGroupPatience);
  std::erase_if(loose_, [](const Operation& sent) { return sent.done(); });
  if (!valid) {
    failure = Error{valid.error().code, text("group ", name(), ", ", header.where(), ": ", valid.error().message)};
    member_->end(*failure);
  } else if (auto ended = member_->ended()) {
    failure = refuse_later(*ended);
  } else {
    const bool shapes_only = header.phase == kShapesOnly;
    Exchange exchange(*member_, std::move(header), deadline, traffic, loose_);
    if (auto done = shapes_only ? only_meet(exchange, size(), rank()) : body(exchange); !done) {
      member_->end(done.error());  // before the exchange drops what it holds
      failure = member_->ended();
    }
  }
  if (failure) {
    failed_ = true;
    loose_.clear();
    member_->wait_for_returns();  // POOL-7
    return fail(std::move(*failure));
  }
  std::lock_guard lock(mutex_);
  traffic_.sent_bytes += traffic.sent_bytes;
  traffic_.received_bytes += traffic.received_bytes;
  ++traffic_.operations;
  return {};
}

void ChannelGroup::copy_own(const Tensor& target, const Tensor& source) {
  copy_bytes(target.data, source.data, source.desc.bytes(), *member_->services().counters);
}

Result<void> ChannelGroup::all_reduce(Tensor inout, Reduce reduce) {
  const std::uint8_t phase = first_phase({&inout, 1});
  const Header header{Collective::kAllReduce, reduce, inout.desc.dtype, phase, -1, {}, {inout.desc.elements()}, {}};
  const auto valid = both(check({&inout, 1}, inout.desc.dtype, 1, phase), check_reducible(inout.desc.dtype));
  return run(header, valid, [&](Exchange& exchange) -> Result<void> {
    std::vector<Tensor> chunks;
    std::int64_t start = 0;
    for (const std::int64_t count : chunk_elements(inout.desc.elements(), inout.desc.dtype, size())) {
      chunks.push_back(slice(inout, start, count));
      start += count;
    }
    return exchange_chunks(exchange, chunks);
  });
}

// Reduce-scatter by direct exchange, then all-gather. That a member announces its reduced chunk says that
// it has read all others' parts of it, so they may be overwritten; settle() waits for the rest.
Result<void> ChannelGroup::exchange_chunks(Exchange& exchange, const std::vector<Tensor>& chunks) {
  const Tensor& own = chunks[at(rank())];
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    if (auto sent = exchange.offer(peer, chunks[at(peer)]); !sent) return sent;
  }
  if (auto met = exchange.meet(); !met) return met;
  if (auto reduced = exchange.reduce(own, own); !reduced) return reduced;
  exchange.next_phase();
  for (int peer = 0; peer < size() && own.desc.elements() > 0; ++peer) {
    if (peer == rank()) continue;
    if (auto sent = exchange.offer(peer, own); !sent) return sent;
  }
  for (int step = 1; step < size(); ++step) {
    const int peer = (rank() + step) % size();
    if (chunks[at(peer)].desc.elements() == 0) continue;  // both sides know: nothing is sent
    if (auto met = exchange.meet_again(peer); !met) return met;
    if (auto pulled = exchange.pull(peer, chunks[at(peer)]); !pulled) return pulled;
  }
  return exchange.settle();
}

Result<void> ChannelGroup::all_gather(Tensor in, std::span<const Tensor> out) {
  const std::uint8_t phase = first_phase({&in, 1});
  const Header header{Collective::kAllGather, Reduce::kSum, in.desc.dtype, phase, -1, {}, {in.desc.elements()}, counts(out)};
  const auto valid = both(check({&in, 1}, in.desc.dtype, 1, phase), check(out, in.desc.dtype, at(size()), phase));
  return run(header, valid, [&](Exchange& exchange) -> Result<void> {
    const Tensor flat = flatten(in);
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      if (auto sent = exchange.offer(peer, flat); !sent) return sent;
    }
    if (auto met = exchange.meet(); !met) return met;
    copy_own(out[at(rank())], in);
    for (int step = 1; step < size(); ++step) {
      const int peer = (rank() + step) % size();
      if (auto pulled = exchange.pull(peer, flatten(out[at(peer)])); !pulled) return pulled;
    }
    return exchange.settle();
  });
}

Result<void> ChannelGroup::reduce_scatter(std::span<const Tensor> in, Tensor out) {
  const DType dtype = out.desc.dtype;
  const std::uint8_t phase = first_phase({&out, 1});
  const Header header{Collective::kReduceScatter, Reduce::kSum, dtype, phase, -1, {}, counts(in), {out.desc.elements()}};
  const auto valid = both(both(check({&out, 1}, dtype, 1, phase), check(in, dtype, at(size()), phase)), check_reducible(dtype));
  return run(header, valid, [&](Exchange& exchange) -> Result<void> {
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      if (auto sent = exchange.offer(peer, flatten(in[at(peer)])); !sent) return sent;
    }
    if (auto met = exchange.meet(); !met) return met;
    if (auto reduced = exchange.reduce(flatten(in[at(rank())]), out); !reduced) return reduced;
    return exchange.settle();
  });
}

Result<void> ChannelGroup::all_to_all(std::span<const Tensor> in, std::span<const Tensor> out) {
  const DType dtype = in.empty() ? DType::kU8 : in[0].desc.dtype;
  const std::uint8_t phase = first_phase(in);
  const Header header{Collective::kAllToAll, Reduce::kSum, dtype, phase, -1, {}, counts(in), counts(out)};
  const auto valid = both(check(in, dtype, at(size()), phase), check(out, dtype, at(size()), phase));
  return run(header, valid, [&](Exchange& exchange) -> Result<void> {
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      if (auto sent = exchange.offer(peer, flatten(in[at(peer)])); !sent) return sent;
    }
    if (auto met = exchange.meet(); !met) return met;
    copy_own(out[at(rank())], in[at(rank())]);
    for (int step = 1; step < size(); ++step) {
      const int peer = (rank() + step) % size();
      if (auto pulled = exchange.pull(peer, flatten(out[at(peer)])); !pulled) return pulled;
    }
    return exchange.settle();
  });
}

Result<void> ChannelGroup::broadcast(Tensor inout, int root) {
  const std::uint8_t phase = first_phase({&inout, 1});
  const Header header{Collective::kBroadcast, Reduce::kSum, inout.desc.dtype, phase, root, {}, {inout.desc.elements()}, {}};
  auto valid = check({&inout, 1}, inout.desc.dtype, 1, phase);
  if (valid && (root < 0 || root >= size())) {
    valid = fail(Errc::kInvalidArgument, text("root ", root, " is not a rank of a group of ", size()));
  }
  return run(header, valid, [&](Exchange& exchange) -> Result<void> {
    const Tensor flat = flatten(inout);
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      if (auto sent = exchange.offer(peer, rank() == root ? flat : slice(flat, 0, 0)); !sent) return sent;
    }
    if (auto met = exchange.meet(); !met) return met;
    if (rank() == root) return exchange.settle();
    return exchange.pull(root, flat);
  });
}

Result<void> ChannelGroup::barrier() {
  return run({.operation = Collective::kBarrier}, {}, [&](Exchange& exchange) { return only_meet(exchange, size(), rank()); });
}

std::unique_ptr<Group> make_group(const Context& context, GroupEnds ends) {
  return std::make_unique<ChannelGroup>(context, std::move(ends));
}

std::vector<std::int64_t> chunk_elements(std::int64_t elements, DType dtype, int size) {
  const std::int64_t line = std::max<std::int64_t>(1, kAlignment / size_of(dtype));
  const std::int64_t even = (elements + size - 1) / size;
  const std::int64_t share = (even + line - 1) / line * line;
  std::vector<std::int64_t> chunks(at(size));
  for (std::int64_t& chunk : chunks) {
    chunk = std::clamp<std::int64_t>(elements, 0, share);
    elements -= chunk;
  }
  return chunks;
}

}  // namespace troupe::transport
