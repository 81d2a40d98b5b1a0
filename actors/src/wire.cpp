#include <troupe/actors/wire.hpp>

#include <utility>

#include <troupe/base/result.hpp>
#include <troupe/base/text.hpp>

namespace troupe {
namespace {

[[noreturn]] void bad(std::string message) { throw Exception(Error{.code = Errc::kBadData, .message = std::move(message)}); }

}  // namespace

std::span<const std::byte> WireReader::take(std::size_t size) {
  if (size > left()) bad(troupe::text("a value of ", size, " bytes was expected at byte ", at_, " of a message, ", left(), " are left"));
  const auto out = bytes_.subspan(at_, size);
  at_ += size;
  return out;
}

std::size_t WireReader::count(std::size_t least) {
  constexpr std::uint64_t kMostWithoutBytes = 1 << 20;
  const auto given = number<std::uint64_t>();
  if (given > (least == 0 ? kMostWithoutBytes : left() / least)) bad(troupe::text("a message announces ", given, " values of at least ", least, " bytes at byte ", at_, ", ", left(), " bytes are left"));
  return static_cast<std::size_t>(given);
}

std::string WireReader::text() {
  const auto from = take(count(1));
  return {reinterpret_cast<const char*>(from.data()), from.size()};
}

bool WireReader::flag() {
  const auto value = std::to_integer<unsigned>(take(1)[0]);
  if (value > 1) bad(troupe::text("a truth value of ", value, " at byte ", at_ - 1, " of a message; 0 or 1 was expected"));
  return value == 1;
}

transport::Tensor WireReader::tensor() {
  if (next_tensor_ == tensors_.size()) bad(troupe::text("a message names tensor ", next_tensor_, ", ", tensors_.size(), " came with it"));
  return std::move(tensors_[next_tensor_++]);
}

void WireReader::finish() const {
  if (left() != 0) bad(troupe::text(left(), " bytes are left over at the end of a message"));
  if (next_tensor_ != tensors_.size()) bad(troupe::text(tensors_.size() - next_tensor_, " tensors are left over at the end of a message"));
}

}  // namespace troupe
