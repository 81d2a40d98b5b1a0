#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include <troupe/actors/verb.hpp>
#include <troupe/actors/wire_table.hpp>

namespace troupe::detail {

/// Puts F into this program's table because it is called somewhere.
template <class T, auto F>
struct WireEntry {
  static inline const bool added = add_wire_verb(verb_id<T, F>(), wire_verb<T, F, verb_return<F>>(verb_name<F>(), static_cast<verb_parameters<F>*>(nullptr)));
};

/// A call of verb F on objects of class T with arguments held in `Holders`.
template <class T, auto F, class... Holders>
class VerbCallImpl final : public TypedCall<verb_value<F>> {
  using Parameters = verb_parameters<F>;
  static constexpr std::size_t kCount = sizeof...(Holders);

 public:
  VerbCallImpl(Clock& clock, bool check, Holders... holders)
      : TypedCall<verb_value<F>>(clock), arguments_(std::in_place, std::move(holders)...) {
    this->verb = {verb_name<F>(), is_pure<F>(), is_idempotent<F>()};
    this->check_arguments = check;
    this->wire_id = verb_id<T, F>();
    (void)WireEntry<T, F>::added;
    std::apply([this](const auto&... a) { this->argument_bytes = (std::int64_t{0} + ... + a.bytes()); }, *arguments_);
    if (check) fingerprints_ = fingerprints();
  }

  void dependencies(int index, std::vector<std::shared_ptr<CallBase>>& out) const override {
    std::apply([&](const auto&... a) { (a.dependencies(index, out), ...); }, *arguments_);
  }

  void run(void* object, Rank& rank, int slot) override {
    invoke(*static_cast<T*>(object), rank.index(), slot, std::make_index_sequence<kCount>());
  }

  void drop_arguments() noexcept override { arguments_.reset(); }

  [[nodiscard]] bool write_arguments(int rank, WireWriter& to) const override {
    return write_each(rank, to, static_cast<Parameters*>(nullptr));
  }

  void read_value(int slot, WireReader& from) override {
    using R = verb_value<F>;
    if constexpr (WireType<R>) this->values[static_cast<std::size_t>(slot)].emplace(Payload<R>::read(from));
  }

  [[nodiscard]] std::string changed_argument() const override {
    if (!this->check_arguments || !arguments_) return {};
    const auto now = fingerprints();
    for (std::size_t i = 0; i < kCount; ++i) {
      if (now[i] != fingerprints_[i]) return text("argument ", i + 1, " of ", this->verb.name);
    }
    return {};
  }

 private:
  [[nodiscard]] std::array<std::uint64_t, kCount> fingerprints() const {
    return std::apply([](const auto&... a) { return std::array<std::uint64_t, kCount>{a.fingerprint()...}; }, *arguments_);
  }

  template <class... A>
  bool write_each(int rank, WireWriter& to, std::tuple<A...>*) const {
    if constexpr (travels<verb_return<F>, A...>) {
      std::apply([&](const auto&... holder) { (Payload<std::decay_t<A>>::write(to, holder.get(rank)), ...); }, *arguments_);
      return true;
    } else {
      return false;
    }
  }

  /// All ranks read the same object (POOL-5): a by-value parameter is a copy, a const& none.
  template <std::size_t I>
  decltype(auto) argument(int rank) const {
    return std::get<I>(*arguments_).get(rank);
  }

  template <std::size_t... I>
  void invoke(T& object, int rank, int slot, std::index_sequence<I...>) {
    auto& value = this->values[static_cast<std::size_t>(slot)];
    if constexpr (std::is_void_v<verb_return<F>>) {
      (object.*F)(argument<I>(rank)...);
      value.emplace();
    } else {
      value.emplace((object.*F)(argument<I>(rank)...));
    }
  }

  std::optional<std::tuple<Holders...>> arguments_;
  std::array<std::uint64_t, kCount> fingerprints_{};
};

/// A value that exists already: what put() makes.
template <class R>
class ValueCall final : public TypedCall<R> {
 public:
  ValueCall(Clock& clock, R value) : TypedCall<R>(clock) {
    this->values.emplace_back(std::move(value));
    this->has_refs.store(true);
    std::vector<CallBase::Completion> none;
    this->finish(nullptr, none);
  }
  void dependencies(int, std::vector<std::shared_ptr<CallBase>>&) const override {}
  void run(void*, Rank&, int) override {}
  void drop_arguments() noexcept override {}
  [[nodiscard]] std::string changed_argument() const override { return {}; }
};

template <class T, auto F, class... A, class... X>
auto make_call(Clock& clock, bool check, std::tuple<A...>*, X&&... x) {
  return std::make_shared<VerbCallImpl<T, F, typename holder_of<A, X>::type...>>(
      clock, check, holder_of<A, X>::make(std::forward<X>(x))...);
}

}  // namespace troupe::detail
