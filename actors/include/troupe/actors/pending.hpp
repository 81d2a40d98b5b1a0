#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <troupe/actors/ref.hpp>

namespace troupe {
namespace detail {

template <class R>
R take(TypedCall<R>& call, std::size_t slot) {
  if constexpr (std::is_copy_constructible_v<R>) {
    if (call.has_refs.load(std::memory_order_acquire)) return *call.values[slot];
  }
  return std::move(*call.values[slot]);
}

}  // namespace detail

/// A call on one rank that has its ticket but perhaps no value yet. Move-only; dropping it does not
/// cancel the call.
template <class R>
class [[nodiscard]] Pending {
 public:
  using Value = std::conditional_t<std::is_same_v<R, std::monostate>, void, R>;
  explicit Pending(std::shared_ptr<detail::TypedCall<R>> call) : call_(std::move(call)) {}
  Pending(Pending&&) noexcept = default;
  Pending& operator=(Pending&&) noexcept = default;

  /// Waits and moves the value out. Once.
  /// Fails with: kTimeout (the call goes on), what the call failed with, kDeadlock.
  [[nodiscard]] Result<Value> get(Duration timeout) {
    if (auto waited = detail::wait_for(*call_, detail::deadline_of(*call_, timeout)); !waited) return fail(waited.error());
    if constexpr (std::is_void_v<Value>) {
      return {};
    } else {
      return detail::take(*call_, 0);
    }
  }

  /// Names the value where it is made; does not wait.
  [[nodiscard]] Ref<R> ref() const {
    call_->has_refs.store(true, std::memory_order_release);
    return Ref<R>(call_, 0);
  }

  /// Runs `done(Result<void>)` on the runtime's executor at completion. Must not block or throw.
  void then(std::function<void(Result<void>)> done) const {
    detail::when_complete(call_, [call = call_, done = std::move(done)] {
      if (call->error()) return done(fail(*call->error()));
      done({});
    });
  }
  [[nodiscard]] bool ready() const noexcept { return call_->complete(); }
  [[nodiscard]] std::uint64_t ticket() const noexcept { return call_->ticket; }

 private:
  std::shared_ptr<detail::TypedCall<R>> call_;
};

/// A call on every rank of a pool.
template <class R>
class [[nodiscard]] PendingAll {
 public:
  using Values = std::conditional_t<std::is_same_v<R, std::monostate>, void, std::vector<R>>;
  explicit PendingAll(std::shared_ptr<detail::TypedCall<R>> call) : call_(std::move(call)) {}
  PendingAll(PendingAll&&) noexcept = default;
  PendingAll& operator=(PendingAll&&) noexcept = default;

  /// Waits and moves the values out, by rank. Once.
  /// Fails with: kTimeout (the call goes on), the first failure of any rank (POOL-7), kDeadlock.
  [[nodiscard]] Result<Values> get(Duration timeout) {
    if (auto waited = detail::wait_for(*call_, detail::deadline_of(*call_, timeout)); !waited) return fail(waited.error());
    if constexpr (std::is_void_v<Values>) {
      return {};
    } else {
      std::vector<R> values;
      values.reserve(call_->values.size());
      for (std::size_t slot = 0; slot < call_->values.size(); ++slot) values.push_back(detail::take(*call_, slot));
      return values;
    }
  }

  /// Names the values where they are made, one per rank; does not wait.
  [[nodiscard]] std::vector<Ref<R>> refs() const {
    call_->has_refs.store(true, std::memory_order_release);
    std::vector<Ref<R>> out;
    for (int rank = 0; rank < call_->width; ++rank) out.push_back(Ref<R>(call_, rank));
    return out;
  }

  void then(std::function<void(Result<void>)> done) const { Pending<R>(call_).then(std::move(done)); }
  [[nodiscard]] bool ready() const noexcept { return call_->complete(); }
  [[nodiscard]] std::uint64_t ticket() const noexcept { return call_->ticket; }

 private:
  std::shared_ptr<detail::TypedCall<R>> call_;
};

}  // namespace troupe
