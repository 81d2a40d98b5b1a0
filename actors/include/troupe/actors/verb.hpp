#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/actors/argument.hpp>
#include <troupe/actors/call.hpp>
#include <troupe/actors/payload.hpp>
#include <troupe/actors/rank.hpp>
#include <troupe/actors/ref.hpp>
#include <troupe/base/text.hpp>

namespace troupe {

/// A set of verbs, to declare what is true of them inside a class:
/// `using troupe_pure = troupe::Verbs<&Counter::value>;` (a failure leaves the pool consistent, POOL-7)
/// `using troupe_idempotent = troupe::Verbs<&Counter::set>;` (may be retried, SUP-5).
template <auto... F>
struct Verbs {};

namespace detail {

template <class>
struct MemberFunction;
template <class C, class R, class... A>
struct MemberFunction<R (C::*)(A...)> {
  using Class = C;
  using Return = R;
  using Parameters = std::tuple<A...>;
};
template <class C, class R, class... A>
struct MemberFunction<R (C::*)(A...) const> : MemberFunction<R (C::*)(A...)> {};
template <class C, class R, class... A>
struct MemberFunction<R (C::*)(A...) noexcept> : MemberFunction<R (C::*)(A...)> {};
template <class C, class R, class... A>
struct MemberFunction<R (C::*)(A...) const noexcept> : MemberFunction<R (C::*)(A...)> {};

template <auto F>
using verb_class = typename MemberFunction<decltype(F)>::Class;
template <auto F>
using verb_return = std::decay_t<typename MemberFunction<decltype(F)>::Return>;
/// void verbs store a monostate.
template <auto F>
using verb_value = std::conditional_t<std::is_void_v<verb_return<F>>, std::monostate, verb_return<F>>;
template <auto F>
using verb_parameters = typename MemberFunction<decltype(F)>::Parameters;

template <auto F, class Set>
inline constexpr bool contains = false;
template <auto F, auto... G>
inline constexpr bool contains<F, Verbs<G...>> = (std::is_same_v<std::integral_constant<decltype(F), F>, std::integral_constant<decltype(G), G>> || ...);

template <auto F>
constexpr bool is_pure() {
  if constexpr (requires { typename verb_class<F>::troupe_pure; }) return contains<F, typename verb_class<F>::troupe_pure>;
  return false;
}
template <auto F>
constexpr bool is_idempotent() {
  if constexpr (requires { typename verb_class<F>::troupe_idempotent; }) return contains<F, typename verb_class<F>::troupe_idempotent>;
  return false;
}

/// "Counter::add" out of the compiler's own spelling of F.
template <auto F>
constexpr std::string_view verb_name() {
  std::string_view all = __PRETTY_FUNCTION__;
  const auto begin = all.find("F = ");
  if (begin == std::string_view::npos) return all;
  all.remove_prefix(begin + 4);
  // gcc writes `&Class::name;` or `(R (Class::*)(A))(& Class::name);`, clang `&Class::name]`
  const auto end = all.find_first_of(";]");
  all = all.substr(0, end);
  if (const auto ampersand = all.rfind('&'); ampersand != std::string_view::npos) all.remove_prefix(ampersand + 1);
  while (!all.empty() && all.front() == ' ') all.remove_prefix(1);
  while (!all.empty() && (all.back() == ')' || all.back() == ' ')) all.remove_suffix(1);
  return all;
}

/// The name of T as the compiler spells it, without namespaces.
template <class T>
constexpr std::string_view class_name_view() {
  std::string_view all = __PRETTY_FUNCTION__;
  all.remove_prefix(all.find("T = ") + 4);
  all = all.substr(0, all.find_first_of(";]<"));
  if (const auto colon = all.rfind(':'); colon != std::string_view::npos) all.remove_prefix(colon + 1);
  return all;
}
template <class T>
std::string class_name() {
  return std::string(class_name_view<T>());
}

template <class P>
inline constexpr bool parameter_ok = PayloadType<std::decay_t<P>> && !(std::is_lvalue_reference_v<P> && !std::is_const_v<std::remove_reference_t<P>>);

template <class Parameters, class... X>
inline constexpr bool arguments_fit = false;
template <class... A, class... X>
  requires(sizeof...(A) == sizeof...(X))
inline constexpr bool arguments_fit<std::tuple<A...>, X...> =
    ((parameter_ok<A> && requires { typename holder_of<A, X>::type; }) && ...);

}  // namespace detail

/// True when `F` is a verb of T that takes `X...` on all ranks (each a value, a Ref, a Gather or
/// per_rank() of those): what call() demands.
template <auto F, class T, class... X>
concept VerbCall = std::is_member_function_pointer_v<decltype(F)> && std::is_base_of_v<detail::verb_class<F>, T> &&
                   PayloadType<detail::verb_return<F>> && detail::arguments_fit<detail::verb_parameters<F>, X...>;

/// The same for one rank: no per_rank().
template <auto F, class T, class... X>
concept SingleVerbCall = VerbCall<F, T, X...> && !(is_per_rank<std::decay_t<X>> || ...);

}  // namespace troupe
