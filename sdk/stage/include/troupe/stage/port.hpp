#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <troupe/actors/verb.hpp>
#include <troupe/layout/port_layout.hpp>
#include <troupe/stage/loss.hpp>
#include <troupe/torch/packed.hpp>

namespace troupe {

/// What a module says about one of its ports, so that a wrong connection is found by graph.check() and a
/// wrong tensor is named when it arrives. A module may have
/// `std::vector<PortSpec> input_ports() const` and `output_ports() const`, in port order.
struct PortSpec {
  std::string name;                          ///< For messages: "patches".
  std::vector<std::int64_t> row_dims = {};   ///< Dims after the first; -1: any size.
  c10::ScalarType dtype = c10::ScalarType::Float;
  static auto troupe_fields(auto& self) { return std::tie(self.name, self.row_dims, self.dtype); }
};

/// A stage or source inside one graph.
struct NodeId {
  int index = -1;
  friend bool operator==(NodeId, NodeId) = default;
};

/// Where values of type T come out: a stage's output, a member of it, or a member of a source's batch.
template <class T>
struct OutPort {
  NodeId node;
  std::string name;                     ///< "" the whole output, else the member.
  int index = 0;                        ///< Among the node's packed outputs; -1 for source members.
  const T* (*look)(const void* object); ///< Finds the value in what the node returned.
};

/// Where a stage takes its `index`-th forward argument.
template <class T>
struct InPort {
  NodeId node;
  int index = 0;
};

/// One connection's layout. `to` says how the elements lie on the destination's mesh (and, by
/// PortLayout::grad, how its gradient returns: EDG-2); the source side is what its own inputs made it.
struct EdgeOptions {
  PortLayout to;
};

namespace detail {

template <auto P>
struct MemberPointer;
template <class C, class T, T C::*P>
struct MemberPointer<P> {
  using Class = C;
  using Type = T;
};

template <class O>
struct Whole {
  static const O* look(const void* object) { return static_cast<const O*>(object); }
};
template <auto P>
struct Member {
  using Class = typename MemberPointer<P>::Class;
  using Type = typename MemberPointer<P>::Type;
  static const Type* look(const void* object) { return &(static_cast<const Class*>(object)->*P); }
};

/// Which field of O the member P is, in the order of troupe_fields.
template <class O, auto P>
int field_index() {
  O probe;
  int found = -1;
  int at = 0;
  std::apply([&](auto&... fields) { ((static_cast<const void*>(&fields) == static_cast<const void*>(&(probe.*P)) ? void(found = at) : void(), ++at), ...); },
             O::troupe_fields(probe));
  return found;
}

template <class M>
using forward_parameters = verb_parameters<&M::forward>;
template <class M>
using forward_result = verb_return<&M::forward>;
template <class M, std::size_t I>
using forward_parameter = std::decay_t<std::tuple_element_t<I, forward_parameters<M>>>;

template <class O>
inline constexpr bool all_outputs_packed = false;
template <>
inline constexpr bool all_outputs_packed<Packed> = true;
template <class... F>
inline constexpr bool all_outputs_packed<std::tuple<F&...>> = (std::is_same_v<F, Packed> && ...);

/// A stage returns a Loss, a Packed, or a struct whose fields are Packed.
template <class O>
constexpr bool output_ok() {
  if constexpr (std::is_same_v<O, Loss> || std::is_same_v<O, Packed>) {
    return true;
  } else if constexpr (WithFields<O>) {
    return all_outputs_packed<decltype(O::troupe_fields(std::declval<O&>()))>;
  } else {
    return false;
  }
}

}  // namespace detail

/// A user's class that can be a stage: a constructor (Rank&, const Config&) and a forward() whose
/// parameters are payloads. forward() must not keep state between calls but its parameters.
template <class M, class Config>
concept StageModule = std::is_constructible_v<M, Rank&, const Config&> && PayloadType<Config> &&
                      std::is_member_function_pointer_v<decltype(&M::forward)> && detail::output_ok<detail::forward_result<M>>();

/// A source that a run can continue with: `std::string state() const` says where it stands, in a form of its own;
/// `restore(state)` goes there: next() then gives what it would have given.
template <class S>
concept ResumableSource = requires(S& source, const S& looked_at, const std::string& state) {
  { looked_at.state() } -> std::convertible_to<std::string>;
  source.restore(state);
};

/// A user's class that produces batches: `std::optional<Batch> next()`; better a ResumableSource.
template <class S, class Config>
concept SourceModule = (std::is_constructible_v<S, const Config&> || std::is_constructible_v<S, Rank&, const Config&>) && PayloadType<Config> && requires(S& source) {
  typename std::decay_t<decltype(source.next())>::value_type;
  requires PayloadType<typename std::decay_t<decltype(source.next())>::value_type>;
};

}  // namespace troupe
