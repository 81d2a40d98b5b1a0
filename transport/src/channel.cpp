#include <troupe/transport/channel.hpp>

#include <cassert>
#include <utility>

#include <troupe/base/text.hpp>

#include "incoming.hpp"
#include "services.hpp"

namespace troupe::transport {

Context make_context() {
  auto clock = system_clock();
  return {clock, std::make_shared<Executor>(clock), std::make_shared<Log>(), std::make_shared<TransferCounters>()};
}

Result<void> check(const ChannelOptions& options) {
  if (options.credit_messages >= 1 && options.credit_bytes >= 1) return {};
  return fail(Errc::kInvalidArgument, text("channel ", options.name, ": credits of ", options.credit_messages, " messages and ",
                                           options.credit_bytes, " bytes let nothing pass; both must be at least 1"));
}

std::int64_t Message::bytes() const noexcept {
  auto total = static_cast<std::int64_t>(meta.size());
  for (const Tensor& tensor : tensors) total += tensor.desc.bytes();
  return total;
}

Incoming::Incoming(std::shared_ptr<Source> source) : source_(std::move(source)) {}

Incoming::Incoming(Incoming&& other) noexcept : source_(std::move(other.source_)) {}

Incoming& Incoming::operator=(Incoming&& other) noexcept {
  std::swap(source_, other.source_);  // what this one held is rejected when `other` goes
  return *this;
}

Incoming::~Incoming() {
  // A dropped message must reach the sender as a failure, never as success.
  if (source_) source_->reject({Errc::kClosed, "the receiver dropped the message without accepting it"});
}

std::span<const std::byte> Incoming::meta() const { return source_->meta(); }
const std::vector<TensorDesc>& Incoming::tensors() const { return source_->tensors(); }
std::uint64_t Incoming::sequence() const { return source_->sequence(); }

Operation Incoming::accept(std::vector<Tensor> targets, Deadline deadline) && {
  assert(source_ && "a message is accepted once");
  return std::exchange(source_, nullptr)->accept(std::move(targets), deadline);
}

Result<std::vector<Tensor>> Incoming::accept_by_reference() && {
  assert(source_ && "a message is accepted once");
  auto tensors = source_->accept_by_reference();
  if (tensors || tensors.error().code != Errc::kUnavailable) source_ = nullptr;
  return tensors;
}

void Incoming::reject(Error why) && {
  assert(source_ && "a message is rejected once");
  std::exchange(source_, nullptr)->reject(std::move(why));
}

}  // namespace troupe::transport
