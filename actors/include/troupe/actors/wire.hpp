#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <troupe/transport/memory.hpp>

namespace troupe {

static_assert(std::endian::native == std::endian::little, "the wire form of values is little-endian");

/// A value on its way to another process: small things as bytes in order, tensors beside them, not copied.
/// Thread: one at a time.
class WireWriter {
 public:
  void raw(const void* data, std::size_t size) {
    const auto* from = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), from, from + size);
  }
  template <class T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void number(T value) {
    raw(&value, sizeof value);
  }
  void text(std::string_view value) {
    number(static_cast<std::uint64_t>(value.size()));
    raw(value.data(), value.size());
  }
  /// Lends `tensor` until the message has been taken; its description travels with the data plane.
  void tensor(transport::Tensor tensor) { tensors_.push_back(std::move(tensor)); }

  [[nodiscard]] const std::vector<std::byte>& bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::vector<std::byte>& bytes() noexcept { return bytes_; }
  [[nodiscard]] std::vector<transport::Tensor>& tensors() noexcept { return tensors_; }

 private:
  std::vector<std::byte> bytes_;
  std::vector<transport::Tensor> tensors_;
};

/// The other end. What was written by other code, or was cut short, is an Exception with kBadData that says
/// what was expected where; nothing is read past the end, and no size is believed before it is checked.
/// Thread: one at a time.
class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> bytes, std::vector<transport::Tensor> tensors = {})
      : bytes_(bytes), tensors_(std::move(tensors)) {}

  template <class T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  [[nodiscard]] T number() {
    if constexpr (std::is_same_v<T, bool>) {
      return flag();
    } else {
      T value;
      const auto from = take(sizeof value);
      std::memcpy(&value, from.data(), sizeof value);
      return value;
    }
  }
  [[nodiscard]] std::string text();
  /// A count of things that take at least `least` bytes each. Of those that take none: 2^20 at most.
  [[nodiscard]] std::size_t count(std::size_t least);
  [[nodiscard]] std::span<const std::byte> take(std::size_t size);
  [[nodiscard]] transport::Tensor tensor();

  [[nodiscard]] std::size_t left() const noexcept { return bytes_.size() - at_; }
  /// The whole message was read: anything over is an Exception too.
  void finish() const;

 private:
  [[nodiscard]] bool flag();

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  std::vector<transport::Tensor> tensors_;
  std::size_t next_tensor_ = 0;
};

}  // namespace troupe
