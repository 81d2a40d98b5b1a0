#include "exchange.hpp"

#include <utility>

#include <troupe/base/text.hpp>

#include "memory.hpp"
#include "reduce.hpp"

namespace troupe::transport {
namespace {

// Up to here a copy costs less than waiting until the peer has read the bytes.
constexpr std::int64_t kCopyBytes = 4096;

std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

}  // namespace

Exchange::Exchange(Member& member, Header header, Deadline deadline, GroupTraffic& traffic, Loose& loose)
    : member_(member),
      header_(std::move(header)),
      deadline_(deadline),
      traffic_(traffic),
      loose_(loose),
      incoming_(at(member.size())) {}

Result<void> Exchange::offer(int peer, const Tensor& tensor) {
  const std::int64_t bytes = tensor.desc.bytes();
  Message message{encode(header_), {}};
  if (bytes > kCopyBytes) {
    message.tensors.push_back({tensor.data, tensor.desc, member_.lend(tensor.keep), tensor.ready_event});
  } else if (bytes > 0) {
    auto copy = allocate(bytes);
    if (!copy) return fail(copy.error());
    copy_bytes(copy->get(), tensor.data, bytes, *member_.services().counters);
    message.tensors.push_back({copy->get(), tensor.desc, *copy});
  }
  traffic_.sent_bytes += bytes;
  Operation sent = member_.to(peer).send(std::move(message), deadline_);
  if (bytes > kCopyBytes) {
    lent_.emplace_back(peer, std::move(sent));
  } else {
    loose_.push_back(std::move(sent));
  }
  return {};
}

tl::unexpected<Error> Exchange::lost(int peer, Error why) const {
  const Errc code = why.code == Errc::kMismatch || why.code == Errc::kTimeout ? why.code : Errc::kPeerLost;
  return fail(caused_by(std::move(why), code,
                        text("group ", member_.name(), ", member ", member_.rank(), ", ", header_.where(), ": waiting for member ", peer)));
}

Result<Header> Exchange::receive(int peer) {
  auto incoming = member_.from(peer).receive(deadline_);
  if (!incoming) return lost(peer, incoming.error());
  auto header = decode(incoming->meta());
  if (!header) return fail(header.error());
  if (incoming->tensors().empty()) {  // nothing to pull: acknowledged at once
    (void)std::move(*incoming).accept({}, deadline_);
  } else {
    incoming_[at(peer)].emplace(std::move(*incoming));
  }
  return header;
}

Result<void> Exchange::meet() {
  std::vector<Header> headers(at(member_.size()));
  for (int peer = 0; peer < member_.size(); ++peer) {
    if (peer == member_.rank()) {
      headers[at(peer)] = header_;
    } else {
      auto header = receive(peer);
      if (!header) return fail(header.error());
      headers[at(peer)] = std::move(*header);
    }
  }
  auto agreed = agree(headers);
  if (!agreed) agreed.error().message = text("group ", member_.name(), ", ", agreed.error().message);
  return agreed;
}

Result<void> Exchange::meet_again(int peer) {
  auto header = receive(peer);
  if (!header) return fail(header.error());
  if (header->position != header_.position || header->phase != header_.phase) {
    return fail(Errc::kInternal, text("group ", member_.name(), ": member ", peer, " sent ", header->where(), " phase ",
                                      int{header->phase}, " inside ", header_.where()));
  }
  return {};
}

Result<void> Exchange::pull(int peer, const Tensor& target) {
  const std::int64_t bytes = target.desc.bytes();
  if (bytes == 0) return {};
  std::optional<Incoming> incoming = std::exchange(incoming_[at(peer)], std::nullopt);
  const auto pulled = std::move(*incoming).accept({target}, deadline_).wait();
  if (!pulled) return lost(peer, pulled.error());
  traffic_.received_bytes += bytes;
  return {};
}

/// What `peer` offered, in place where the backend can, else in scratch.
Result<Tensor> Exchange::read(int peer, const Tensor& like) {
  auto referenced = std::move(*incoming_[at(peer)]).accept_by_reference();
  if (referenced) {
    if (referenced->size() != 1 || referenced->front().desc != like.desc) {
      return fail(Errc::kInternal, text("group ", member_.name(), ": member ", peer, " sent another tensor than it declared"));
    }
    incoming_[at(peer)].reset();
    traffic_.received_bytes += like.desc.bytes();
    return std::move(referenced->front());
  }
  if (referenced.error().code != Errc::kUnavailable) return lost(peer, referenced.error());
  auto scratch = allocate(like.desc.bytes());
  if (!scratch) return fail(scratch.error());
  Tensor copy{scratch->get(), like.desc, *scratch};
  if (auto pulled = pull(peer, copy); !pulled) return fail(pulled.error());
  return copy;
}

Result<void> Exchange::reduce(const Tensor& own, const Tensor& out) {
  if (own.desc.elements() == 0) return {};
  std::vector<Tensor> read_in_place;  // returned to their members when this ends, read or failed
  std::vector<const void*> parts(at(member_.size()), own.data);
  read_in_place.reserve(parts.size());
  for (int peer = 0; peer < member_.size(); ++peer) {
    if (peer == member_.rank()) continue;
    auto part = read(peer, own);
    if (!part) return fail(part.error());
    parts[at(peer)] = part->data;
    read_in_place.push_back(std::move(*part));
  }
  reduce_in_order(own.desc.dtype, header_.reduce, parts, out.data, own.desc.elements());
  return {};
}

Result<void> Exchange::settle() {
  for (const auto& [peer, operation] : lent_) {
    if (auto sent = operation.wait(); !sent) return lost(peer, sent.error());
  }
  return {};
}

}  // namespace troupe::transport
