#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <tuple>
#include <typeinfo>
#include <utility>

#include <troupe/actors/payload.hpp>
#include <troupe/actors/rank.hpp>
#include <troupe/base/result.hpp>

namespace troupe::detail {

// What a worker process can be asked to do: every verb and constructor that this program's code calls anywhere. The
// host and its workers are the same program, so both tables are the same; the handshake compares them.

/// What a verb left in a worker, and how it is written.
struct WireValue {
  std::shared_ptr<void> value;
  void (*write)(WireWriter& to, const void* value) = nullptr;
};

struct WireVerb {
  std::string_view name;
  const std::type_info* type = nullptr;   ///< Of the class. Two of one name (unnamed namespaces of two files) are told apart by it.
  WireValue (*run)(void* object, WireReader& arguments) = nullptr;   ///< Null: a parameter or the result can't travel.
};

struct WireClass {
  std::string_view name;
  const std::type_info* type = nullptr;
  std::shared_ptr<void> (*make)(Rank& rank, WireReader& arguments) = nullptr;   ///< Null: an argument can't travel.
};

/// Entries are added before main, or while a shared object is loaded, and stay. A name that two classes share can't be
/// asked for: find_* then fails with kUnavailable. Thread: any.
bool add_wire_verb(std::uint64_t id, const WireVerb& verb);
bool add_wire_class(std::uint64_t id, const WireClass& made);
[[nodiscard]] Result<WireVerb> find_wire_verb(std::uint64_t id);
[[nodiscard]] Result<WireClass> find_wire_class(std::uint64_t id);
/// Of all ids: equal for programs that can work together.
[[nodiscard]] std::uint64_t wire_table_hash();

/// FNV-1a of the compiler's own spelling: equal in every process of one program.
constexpr std::uint64_t name_hash(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}
template <class T, auto F>
constexpr std::uint64_t verb_id() {
  return name_hash(__PRETTY_FUNCTION__);
}
template <class T, class... Args>
constexpr std::uint64_t class_id() {
  return name_hash(__PRETTY_FUNCTION__);
}

template <class T, auto F, class R, class... A>
WireValue run_wire_verb(void* object, WireReader& arguments, std::tuple<A...>*) {
  // braces: in order of the parameters
  std::tuple<std::decay_t<A>...> values{Payload<std::decay_t<A>>::read(arguments)...};
  arguments.finish();
  const auto call = [&](auto&... each) -> decltype(auto) { return (static_cast<T*>(object)->*F)(static_cast<std::decay_t<A>&&>(each)...); };
  if constexpr (std::is_void_v<R>) {
    std::apply(call, values);
    return {};
  } else {
    return {std::make_shared<std::decay_t<R>>(std::apply(call, values)), [](WireWriter& to, const void* value) { Payload<std::decay_t<R>>::write(to, *static_cast<const std::decay_t<R>*>(value)); }};
  }
}

template <class R, class... A>
inline constexpr bool travels = WireType<std::decay_t<R>> && (WireType<std::decay_t<A>> && ...);

template <class T, auto F, class R, class... A>
WireVerb wire_verb(std::string_view name, std::tuple<A...>*) {
  WireVerb out{name, &typeid(T)};
  if constexpr (travels<R, A...>) out.run = [](void* object, WireReader& arguments) { return run_wire_verb<T, F, R>(object, arguments, static_cast<std::tuple<A...>*>(nullptr)); };
  return out;
}

template <class T, class... Args>
std::shared_ptr<void> construct(Rank& rank, const std::tuple<Args...>& args) {
  return std::apply(
      [&rank](const auto&... a) -> std::shared_ptr<void> {
        if constexpr (std::is_constructible_v<T, Rank&, const Args&...>) {
          return std::make_shared<T>(rank, a...);
        } else {
          return std::make_shared<T>(a...);
        }
      },
      args);
}

template <class T, class... Args>
WireClass wire_class(std::string_view name) {
  WireClass out{name, &typeid(T)};
  if constexpr ((WireType<Args> && ...)) {
    out.make = [](Rank& rank, WireReader& arguments) {
      const std::tuple<Args...> args{Payload<Args>::read(arguments)...};
      arguments.finish();
      return construct<T>(rank, args);
    };
  }
  return out;
}

}  // namespace troupe::detail
