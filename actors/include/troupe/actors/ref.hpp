#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <troupe/actors/call.hpp>
#include <troupe/actors/payload.hpp>

namespace troupe {

/// A value that stays where a rank made it, perhaps before it is made. Fits wherever a verb takes T: the
/// receiving rank resolves it at the head of its queue (POOL-6). Counted: the value goes with the last
/// holder (POOL-8). Copying a Ref copies no data.
template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::shared_ptr<detail::TypedCall<T>> call, int slot) : call_(std::move(call)), slot_(slot) {}

  [[nodiscard]] explicit operator bool() const noexcept { return call_ != nullptr; }

  /// Waits and looks at the value where it is.
  /// Fails with: kTimeout, what the producing call failed with, kDeadlock, kInvalidArgument when empty.
  [[nodiscard]] Result<std::reference_wrapper<const T>> get(Duration timeout) const {
    if (!call_) return fail(Errc::kInvalidArgument, "an empty Ref was read: it never named a value");
    if (auto waited = detail::wait_for(*call_, detail::deadline_of(*call_, timeout)); !waited) return fail(waited.error());
    return std::cref(value());
  }

  [[nodiscard]] const std::shared_ptr<detail::TypedCall<T>>& call() const noexcept { return call_; }
  /// The value of a call that completed well. Not before.
  [[nodiscard]] const T& value() const { return *call_->values[static_cast<std::size_t>(slot_)]; }

 private:
  std::shared_ptr<detail::TypedCall<T>> call_;
  int slot_ = 0;
};

/// An argument made on the receiving rank from several Refs: `combine(values, rank)` runs on the rank's
/// thread at the head of its queue, once all are there. An edge between stages is one.
template <class T, class S = T>
struct Gather {
  std::vector<Ref<S>> sources;
  std::function<T(std::span<const Ref<S>> sources, int rank)> combine;
};

/// A different argument for each rank of an all-rank call: values[r] goes to rank r.
template <class T>
struct PerRank {
  std::vector<T> values;
};
template <class T>
inline constexpr bool is_per_rank = false;
template <class T>
inline constexpr bool is_per_rank<PerRank<T>> = true;

template <class T>
[[nodiscard]] PerRank<T> per_rank(std::vector<T> values) {
  return PerRank<T>{std::move(values)};
}

template <class T>
struct Payload<Ref<T>> {
  static std::int64_t bytes(const Ref<T>&) { return sizeof(Ref<T>); }
  static std::uint64_t fingerprint(const Ref<T>& ref) {
    return detail::mix(0, reinterpret_cast<std::uintptr_t>(ref.call().get()));
  }
};

}  // namespace troupe
