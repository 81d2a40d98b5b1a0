#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/stage/port.hpp>
#include <troupe/stage/tensor_payload.hpp>
#include <troupe/torch/meta_scope.hpp>
#include <troupe/transport/memory.hpp>

// What an edge does to the values that pass it, member by member.
namespace troupe::detail {

/// Which samples of a source's global batch make this micro-batch.
struct MicroRange {
  std::int64_t begin = 0;
  std::int64_t samples = 0;
  std::int64_t batch_samples = 0;
};

struct EdgeTraffic {
  std::int64_t referenced = 0;
  std::int64_t copied = 0;
};

/// Everything that says which part of a value a rank gets.
struct SliceContext {
  const PortLayout* layout = nullptr;
  const Mesh* mesh = nullptr;
  int rank = 0;
  MicroRange range;
  std::string edge;                                ///< For messages.
  transport::TransferCounters* counters = nullptr;
  std::vector<std::int64_t> samples = {};          ///< Of the micro-batch, that this rank holds.
  EdgeTraffic traffic = {};
  std::int64_t elements = 0;
};

/// Rows of a micro-batch from what the source ranks hold, by `layout`: a view where one stretch of one
/// source serves, else a copy (counted; EDG-1). Order by item id. Throws Exception.
[[nodiscard]] Packed gather_packed(std::span<const Packed* const> sources, bool from_batch, SliceContext& context);

/// Dim 0 of a tensor is its samples.
[[nodiscard]] at::Tensor slice_samples(const at::Tensor& value, SliceContext& context);

/// The samples this rank holds where no packed items decide.
[[nodiscard]] std::vector<std::int64_t> samples_in_order(const SliceContext& context);

/// A batch's vector has one entry a sample. Throws Exception (kMismatch) otherwise.
void check_entries(std::size_t entries, const SliceContext& context);

/// The part of a batch's value that a rank gets, by the value's type: dim 0 of tensors and entries of
/// vectors are samples, items follow their sample, everything else goes to all.
template <class T>
T slice(const T& value, SliceContext& context) {
  if constexpr (std::is_same_v<T, Packed>) {
    const Packed* const source = &value;
    return gather_packed({&source, 1}, true, context);
  } else if constexpr (std::is_same_v<T, at::Tensor>) {
    return slice_samples(value, context);
  } else if constexpr (WithFields<T>) {
    T out;
    auto from = T::troupe_fields(value);
    auto to = T::troupe_fields(out);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((std::get<I>(to) = slice<std::decay_t<decltype(std::get<I>(to))>>(std::get<I>(from), context)), ...);
    }(std::make_index_sequence<std::tuple_size_v<decltype(to)>>());
    return out;
  } else if constexpr (requires(T& list) { list.push_back(list.front()); } && !std::is_same_v<T, std::string>) {
    check_entries(value.size(), context);
    T out;
    for (const auto sample : context.samples) out.push_back(value[static_cast<std::size_t>(context.range.begin + sample)]);
    return out;
  } else {
    return value;
  }
}

/// The same value with tensors that have no data; host integers stay as they are.
template <class T>
T shapes_of(const T& value) {
  if constexpr (std::is_same_v<T, at::Tensor>) {
    return without_data(value);
  } else if constexpr (WithFields<T>) {
    T out;
    auto from = T::troupe_fields(value);
    auto to = T::troupe_fields(out);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((std::get<I>(to) = shapes_of(std::get<I>(from))), ...);
    }(std::make_index_sequence<std::tuple_size_v<decltype(to)>>());
    return out;
  } else if constexpr (requires(T& list) { list.push_back(list.front()); } && !std::is_same_v<T, std::string>) {
    T out;
    for (const auto& one : value) out.push_back(shapes_of(one));
    return out;
  } else {
    return value;
  }
}

/// Number of samples that a batch's tensors, vectors and items tell. Throws Exception (kMismatch) when two
/// tensors disagree, naming both sizes.
struct SampleCount {
  std::int64_t samples = -1;          ///< By tensors; -1: none.
  std::int64_t packed_samples = 0;    ///< By the items of packed members.
  [[nodiscard]] std::int64_t count() const noexcept { return samples >= 0 ? samples : packed_samples; }
  void tensor(const at::Tensor& value);
  void packed(const Packed& value);
};
template <class T>
void count_samples(const T& value, SampleCount& count) {
  if constexpr (std::is_same_v<T, Packed>) {
    count.packed(value);
  } else if constexpr (std::is_same_v<T, at::Tensor>) {
    count.tensor(value);
  } else if constexpr (WithFields<T>) {
    std::apply([&](const auto&... fields) { (count_samples(fields, count), ...); }, T::troupe_fields(value));
  }
}

}  // namespace troupe::detail
