#include "wire.hpp"

#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include <troupe/base/text.hpp>

namespace troupe::transport::ucx {
namespace {

constexpr std::size_t kMostDims = 8;
constexpr std::int64_t kLargestTensor = std::int64_t{1} << 50;

class Writer {
 public:
  template <class T>
  void number(T value) {
    raw(&value, sizeof value);
  }
  void raw(const void* data, std::size_t size) {
    const auto* from = static_cast<const std::byte*>(data);
    out.insert(out.end(), from, from + size);
  }
  void bytes(std::span<const std::byte> value) {
    number(static_cast<std::uint64_t>(value.size()));
    raw(value.data(), value.size());
  }
  void text(std::string_view value) { bytes(std::as_bytes(std::span(value))); }
  std::vector<std::byte> out;
};

/// Gives zeros past the end and remembers it: callers look once, at the end, and before they believe a size.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : left_(bytes) {}
  template <class T>
  T number() {
    T value{};
    if (left_.size() < sizeof value) {
      is_short_ = true;
      left_ = {};
      return value;
    }
    std::memcpy(&value, left_.data(), sizeof value);
    left_ = left_.subspan(sizeof value);
    return value;
  }
  std::vector<std::byte> bytes() {
    const auto size = number<std::uint64_t>();
    if (size > left_.size()) {
      is_short_ = true;
      left_ = {};
      return {};
    }
    const auto taken = left_.subspan(0, size);
    left_ = left_.subspan(size);
    return {taken.begin(), taken.end()};
  }
  std::string text() {
    const auto value = bytes();
    return {reinterpret_cast<const char*>(value.data()), value.size()};
  }
  [[nodiscard]] std::size_t left() const noexcept { return left_.size(); }
  [[nodiscard]] bool whole() const noexcept { return !is_short_ && left_.empty(); }
  [[nodiscard]] bool is_short() const noexcept { return is_short_; }

 private:
  std::span<const std::byte> left_;
  bool is_short_ = false;
};

auto bad(std::string what) { return fail(Errc::kBadData, "a peer's message: " + std::move(what)); }

std::optional<TensorDesc> read_desc(Reader& from) {
  TensorDesc out;
  out.dtype = from.number<DType>();
  const auto dims = from.number<std::uint8_t>();
  if (size_of(out.dtype) == 0 || dims > kMostDims) return std::nullopt;
  std::int64_t bytes = size_of(out.dtype);
  for (int i = 0; i < dims; ++i) {
    const auto size = from.number<std::int64_t>();
    if (size < 0 || size > kLargestTensor || (size > 0 && bytes > kLargestTensor / size)) return std::nullopt;
    bytes *= size > 0 ? size : 1;
    out.shape.push_back(size);
  }
  return out;
}

}  // namespace

std::vector<std::byte> write(const Announcement& announcement) {
  Writer to;
  to.number(static_cast<std::uint32_t>(announcement.tensors.size()));
  for (std::size_t i = 0; i < announcement.tensors.size(); ++i) {
    const TensorDesc& desc = announcement.tensors[i];
    to.number(desc.dtype);
    to.number(static_cast<std::uint8_t>(desc.shape.size()));
    for (const std::int64_t size : desc.shape) to.number(size);
    to.number(announcement.alone[i]);
  }
  to.bytes(announcement.meta);
  to.number(static_cast<std::uint8_t>(announcement.is_inline));
  to.bytes(announcement.packed);
  return std::move(to.out);
}

Result<Announcement> read_announcement(std::span<const std::byte> bytes) {
  Reader from(bytes);
  Announcement out;
  const auto count = from.number<std::uint32_t>();
  if (count > from.left() / 3) return bad(text(count, " tensors in ", bytes.size(), " bytes"));
  std::int64_t total = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    auto desc = read_desc(from);
    const auto alone = from.number<std::uint8_t>();
    if (!desc || alone > 1 || from.is_short()) return bad(text("the description of tensor ", i, " of ", count, " is broken"));
    total += desc->bytes();
    if (total > kLargestTensor) return bad(text("tensors of more than ", kLargestTensor, " bytes"));
    out.tensors.push_back(std::move(*desc));
    out.alone.push_back(alone);
  }
  out.meta = from.bytes();
  const auto is_inline = from.number<std::uint8_t>();
  out.packed = from.bytes();
  if (!from.whole() || is_inline > 1) return bad("an announcement that is cut short, or longer than it says");
  out.is_inline = is_inline == 1;
  const Packing packing = packing_of(out.tensors, out.alone);
  const std::int64_t expected = out.is_inline ? packing.bytes : 0;
  if (static_cast<std::int64_t>(out.packed.size()) != expected) return bad(text("its tensors take ", expected, " bytes, ", out.packed.size(), " came with it"));
  return out;
}

std::vector<std::byte> write(const Control& control) {
  Writer to;
  to.number(control.kind);
  to.number(control.copies);
  to.number(control.via);
  to.number(control.why.code);
  to.text(control.why.describe().substr(0, kLargestText));
  return std::move(to.out);
}

Result<Control> read_control(std::span<const std::byte> bytes) {
  Reader from(bytes);
  Control out;
  out.kind = from.number<Kind>();
  out.copies = from.number<std::int64_t>();
  out.via = from.number<std::uint8_t>();
  out.why.code = from.number<Errc>();
  out.why.message = from.text();
  if (!from.whole() || out.kind < Kind::kAck || out.kind > Kind::kEndOfReceiver) return bad("a control message that is cut short or of unknown kind");
  if (out.why.code < Errc::kInvalidArgument || out.why.code > Errc::kInternal) return bad("an error of unknown code");
  return out;
}

Result<Head> read_head(std::span<const std::byte> bytes) {
  if (bytes.size() != sizeof(Head)) return bad(text("a header of ", bytes.size(), " bytes; ", sizeof(Head), " were expected"));
  Head out;
  std::memcpy(&out, bytes.data(), sizeof out);   // UCX does not align it
  if (out.magic != kMagic) return bad("a header that is not Troupe's");
  if (out.version != kVersion) return fail(Errc::kMismatch, text("a peer speaks version ", out.version, " of the wire, this node ", kVersion));
  return out;
}

std::vector<std::byte> write(const Address& address) {
  Writer to;
  to.number(kMagic);
  to.number(kVersion);
  to.number(address.node);
  to.text(address.host);
  to.number(address.user);
  to.text(address.namespaces);
  to.bytes(address.local);
  to.bytes(address.network);
  return std::move(to.out);
}

Result<Address> read_address(std::span<const std::byte> bytes) {
  Reader from(bytes);
  Address out;
  const auto magic = from.number<std::uint32_t>();
  const auto version = from.number<std::uint32_t>();
  if (from.is_short() || magic != kMagic) return fail(Errc::kBadData, "this is not the address of a UCX node");
  if (version != kVersion) return fail(Errc::kMismatch, text("the address is of wire version ", version, ", this node speaks ", kVersion));
  out.node = from.number<std::uint64_t>();
  out.host = from.text();
  out.user = from.number<std::uint64_t>();
  out.namespaces = from.text();
  out.local = from.bytes();
  out.network = from.bytes();
  if (!from.whole()) return fail(Errc::kBadData, "the address of a UCX node is cut short, or longer than it says");
  return out;
}

Packing packing_of(const std::vector<TensorDesc>& tensors, const std::vector<std::uint8_t>& alone) {
  Packing out;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (alone[i] != 0) {
      out.offsets.push_back(-1);
      continue;
    }
    out.bytes = (out.bytes + kAlign - 1) / kAlign * kAlign;
    out.offsets.push_back(out.bytes);
    out.bytes += tensors[i].bytes();
  }
  return out;
}

}  // namespace troupe::transport::ucx
