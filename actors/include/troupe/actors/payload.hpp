#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

#include <troupe/actors/wire.hpp>

namespace troupe {

/// Says that a type may be an argument or result of a verb, a config or a port, and how large it is.
/// Numbers, enums, strings, vectors, optionals, Refs, pool handles and structs that list their members:
///
///     struct Batch {
///       Packed pixels;
///       std::vector<std::int64_t> labels;
///       static auto troupe_fields(auto& self) { return std::tie(self.pixels, self.labels); }
///     };
///
/// One list serves wire, slicing, checksum and meta copy, so it is checked from the first day, in
/// threads too. Tensor types add their own specialisation (troupe/torch/payload.hpp).
/// A specialisation has `static std::int64_t bytes(const T&)` (what back-pressure counts) and
/// `static std::uint64_t fingerprint(const T&)` (what debug builds compare at completion, POOL-5), and, for
/// what may go to another process, `static void write(WireWriter&, const T&)` and `static T read(WireReader&)`.
template <class T>
struct Payload;

template <class T>
concept PayloadType = std::is_void_v<T> || requires(const T& value) {
  { Payload<T>::bytes(value) } -> std::convertible_to<std::int64_t>;
  { Payload<T>::fingerprint(value) } -> std::convertible_to<std::uint64_t>;
};

/// A payload that can go to another process. Read values are those that were written, bit for bit.
template <class T>
concept WireType = std::is_void_v<T> || requires(const T& value, WireWriter& to, WireReader& from) {
  Payload<T>::write(to, value);
  { Payload<T>::read(from) } -> std::same_as<T>;
};

template <class T>
concept WithFields = requires(T& value) { T::troupe_fields(value); };

namespace detail {

/// Mixes one more word into a running hash (splitmix64's finaliser, public domain).
constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  std::uint64_t x = hash + 0x9e3779b97f4a7c15ULL + word;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

template <class Tuple>
inline constexpr bool all_travel = false;
template <class... F>
inline constexpr bool all_travel<std::tuple<F...>> = (WireType<std::decay_t<F>> && ...);
template <class T>
concept fields_travel = std::is_default_constructible_v<T> && all_travel<std::decay_t<decltype(T::troupe_fields(std::declval<T&>()))>>;

}  // namespace detail

template <class T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
struct Payload<T> {
  static std::int64_t bytes(const T&) { return sizeof(T); }
  static std::uint64_t fingerprint(const T& value) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::hash<T>{}(value);
    } else {
      return static_cast<std::uint64_t>(value);
    }
  }
  static void write(WireWriter& to, const T& value) { to.number(value); }
  static T read(WireReader& from) { return from.number<T>(); }
};

template <>
struct Payload<std::monostate> {
  static std::int64_t bytes(const std::monostate&) { return 0; }
  static std::uint64_t fingerprint(const std::monostate&) { return 0; }
  static void write(WireWriter&, const std::monostate&) {}
  static std::monostate read(WireReader&) { return {}; }
};

template <>
struct Payload<std::string> {
  static std::int64_t bytes(const std::string& value) { return static_cast<std::int64_t>(value.size()); }
  static std::uint64_t fingerprint(const std::string& value) { return std::hash<std::string>{}(value); }
  static void write(WireWriter& to, const std::string& value) { to.text(value); }
  static std::string read(WireReader& from) { return from.text(); }
};

template <PayloadType T>
struct Payload<std::vector<T>> {
  static std::int64_t bytes(const std::vector<T>& values) {
    if constexpr (std::is_arithmetic_v<T>) return static_cast<std::int64_t>(values.size() * sizeof(T));
    std::int64_t sum = 0;
    for (const auto& value : values) sum += Payload<T>::bytes(value);
    return sum;
  }
  /// Long vectors of numbers are sampled at 64 places: a checksum must not cost a pass over the data.
  static std::uint64_t fingerprint(const std::vector<T>& values) {
    std::uint64_t hash = values.size();
    const std::size_t step = std::is_arithmetic_v<T> && values.size() > 64 ? values.size() / 64 : 1;
    for (std::size_t i = 0; i < values.size(); i += step) {
      hash = detail::mix(hash, Payload<T>::fingerprint(static_cast<const T&>(values[i])));
    }
    return hash;
  }
  static void write(WireWriter& to, const std::vector<T>& values)
    requires WireType<T>
  {
    to.number(static_cast<std::uint64_t>(values.size()));
    if constexpr (kPacked) {
      to.raw(values.data(), values.size() * sizeof(T));
    } else {
      for (const auto& value : values) Payload<T>::write(to, value);
    }
  }
  static std::vector<T> read(WireReader& from)
    requires WireType<T>
  {
    if constexpr (kPacked) {
      std::vector<T> values(from.count(sizeof(T)));
      const auto bytes = from.take(values.size() * sizeof(T));
      if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
      return values;
    } else {
      std::vector<T> values;
      for (std::size_t left = from.count(std::is_empty_v<T> ? 0 : 1); left > 0; --left) values.push_back(Payload<T>::read(from));
      return values;
    }
  }

 private:
  static constexpr bool kPacked = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;
};

template <PayloadType T>
struct Payload<std::optional<T>> {
  static std::int64_t bytes(const std::optional<T>& value) { return value ? Payload<T>::bytes(*value) : 0; }
  static std::uint64_t fingerprint(const std::optional<T>& value) {
    return value ? detail::mix(1, Payload<T>::fingerprint(*value)) : 0;
  }
  static void write(WireWriter& to, const std::optional<T>& value)
    requires WireType<T>
  {
    to.number(value.has_value());
    if (value) Payload<T>::write(to, *value);
  }
  static std::optional<T> read(WireReader& from)
    requires WireType<T>
  {
    if (!from.number<bool>()) return std::nullopt;
    return Payload<T>::read(from);
  }
};

/// Structs: the sum and the hash over their fields, each of which must be a payload itself.
template <WithFields T>
struct Payload<T> {
  static std::int64_t bytes(const T& value) {
    return std::apply(
        [](const auto&... fields) { return (std::int64_t{0} + ... + Payload<std::decay_t<decltype(fields)>>::bytes(fields)); },
        T::troupe_fields(value));
  }
  static std::uint64_t fingerprint(const T& value) {
    std::uint64_t hash = 0;
    std::apply(
        [&hash](const auto&... fields) {
          ((hash = detail::mix(hash, Payload<std::decay_t<decltype(fields)>>::fingerprint(fields))), ...);
        },
        T::troupe_fields(value));
    return hash;
  }
  static void write(WireWriter& to, const T& value)
    requires detail::fields_travel<T>
  {
    std::apply([&to](const auto&... fields) { (Payload<std::decay_t<decltype(fields)>>::write(to, fields), ...); }, T::troupe_fields(value));
  }
  static T read(WireReader& from)
    requires detail::fields_travel<T>
  {
    T value{};
    std::apply([&from](auto&... fields) { ((fields = Payload<std::decay_t<decltype(fields)>>::read(from)), ...); }, T::troupe_fields(value));
    return value;
  }
};

}  // namespace troupe
