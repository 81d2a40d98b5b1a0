#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/actors/call.hpp>
#include <troupe/actors/payload.hpp>
#include <troupe/actors/ref.hpp>

namespace troupe::detail {

// How a value, Ref, Gather or one of each per rank becomes a parameter of a verb.

template <class A>
struct ValueArgument {
  A value;
  [[nodiscard]] std::int64_t bytes() const { return Payload<A>::bytes(value); }
  [[nodiscard]] std::uint64_t fingerprint() const { return Payload<A>::fingerprint(value); }
  void dependencies(int, std::vector<std::shared_ptr<CallBase>>&) const {}
  const A& get(int) const { return value; }
};

template <class A>
struct RefArgument {
  Ref<A> ref;
  [[nodiscard]] std::int64_t bytes() const { return sizeof(Ref<A>); }
  [[nodiscard]] std::uint64_t fingerprint() const { return 0; }
  void dependencies(int, std::vector<std::shared_ptr<CallBase>>& out) const { out.push_back(ref.call()); }
  const A& get(int) const { return ref.value(); }
};

template <class A, class S>
struct GatherArgument {
  Gather<A, S> gather;
  [[nodiscard]] std::int64_t bytes() const { return static_cast<std::int64_t>(gather.sources.size() * sizeof(Ref<S>)); }
  [[nodiscard]] std::uint64_t fingerprint() const { return 0; }
  void dependencies(int, std::vector<std::shared_ptr<CallBase>>& out) const {
    for (const auto& source : gather.sources) {
      if (out.empty() || out.back() != source.call()) out.push_back(source.call());
    }
  }
  A get(int rank) const { return gather.combine(gather.sources, rank); }
};

template <class Inner>
struct PerRankArgument {
  std::vector<Inner> inner;
  [[nodiscard]] std::int64_t bytes() const {
    std::int64_t sum = 0;
    for (const auto& one : inner) sum += one.bytes();
    return sum;
  }
  [[nodiscard]] std::uint64_t fingerprint() const {
    std::uint64_t hash = 0;
    for (const auto& one : inner) hash = mix(hash, one.fingerprint());
    return hash;
  }
  void dependencies(int rank, std::vector<std::shared_ptr<CallBase>>& out) const {
    inner[static_cast<std::size_t>(rank)].dependencies(rank, out);
  }
  decltype(auto) get(int rank) const { return inner[static_cast<std::size_t>(rank)].get(rank); }
};

/// holder(x) wraps an argument given for a parameter of type A.
template <class A, class X>
struct Holder;  // undefined: X does not fit A
template <class A, class X>
  requires std::is_convertible_v<X, A>
struct Holder<A, X> {
  using type = ValueArgument<A>;
  static constexpr bool is_per_rank = false;
  template <class Y>
  static type make(Y&& x) {
    return {static_cast<A>(std::forward<Y>(x))};
  }
};
template <class A>
struct Holder<A, Ref<A>> {
  using type = RefArgument<A>;
  static constexpr bool is_per_rank = false;
  static type make(Ref<A> x) { return {std::move(x)}; }
};
template <class A, class S>
struct Holder<A, Gather<A, S>> {
  using type = GatherArgument<A, S>;
  static constexpr bool is_per_rank = false;
  static type make(Gather<A, S> x) { return {std::move(x)}; }
};
template <class A, class Y>
  requires requires { typename Holder<A, Y>::type; }
struct Holder<A, PerRank<Y>> {
  using type = PerRankArgument<typename Holder<A, Y>::type>;
  static constexpr bool is_per_rank = true;
  static type make(PerRank<Y> x) {
    type out;
    for (auto& value : x.values) out.inner.push_back(Holder<A, Y>::make(std::move(value)));
    return out;
  }
};
template <class A, class X>
using holder_of = Holder<std::decay_t<A>, std::decay_t<X>>;

}  // namespace troupe::detail
