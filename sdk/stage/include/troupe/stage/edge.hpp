#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <troupe/actors/ref.hpp>
#include <troupe/stage/port.hpp>
#include <troupe/stage/tensor_payload.hpp>
#include <troupe/transport/memory.hpp>

namespace troupe::detail {

/// What a stage's forward or a source's next leaves on its rank, type-erased: the detached value.
struct Output {
  std::shared_ptr<const void> object;  ///< Null from a source: the end of data.
  std::int64_t samples = 0;            ///< Of a source's batch.
  std::string state = {};              ///< Where the source stands after it, if it can say.
};

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

/// One forward argument as a rank received it.
struct InputValue {
  std::shared_ptr<void> value;   ///< A T.
  at::Tensor leaf;               ///< Where the gradient arrives; undefined when none flows.
  Segments segments;             ///< Of a packed input: what this rank holds.
  std::int64_t elements = 0;     ///< In the micro-batch over all ranks (EDG-3).
  EdgeTraffic traffic;
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

/// One connection, type-erased for the driver. Pure but for the transfer counters; used by all ranks.
class EdgeBase {
 public:
  virtual ~EdgeBase() = default;
  NodeId from;
  int from_port = 0;             ///< Among the source's packed outputs; -1: member of a batch.
  std::string from_name;
  NodeId to;
  int to_port = 0;
  PortLayout layout;
  Mesh mesh;                     ///< Of the destination.
  std::string name;              ///< "vision -> language.in1"
  bool check_replicas = false;   ///< Compare replicated gradients bit for bit (EDG-2).
  std::shared_ptr<transport::TransferCounters> counters;

  [[nodiscard]] virtual InputValue gather(std::span<const Ref<Output>> sources, const MicroRange& range, int rank) const = 0;
  [[nodiscard]] bool carries_gradient() const noexcept { return layout.grad != Grad::kNone; }
  [[nodiscard]] bool from_batch() const noexcept { return from_port < 0; }

 protected:
  [[nodiscard]] SliceContext context(const MicroRange& range, int rank) const;
};

template <class T>
class Edge final : public EdgeBase {
 public:
  const T* (*look)(const void*) = nullptr;

  [[nodiscard]] InputValue gather(std::span<const Ref<Output>> sources, const MicroRange& range, int rank) const override {
    SliceContext slicing = context(range, rank);
    InputValue out;
    auto value = std::make_shared<T>();
    if constexpr (std::is_same_v<T, Packed>) {
      std::vector<const Packed*> packed;
      for (const auto& source : sources) packed.push_back(look(source.value().object.get()));
      *value = gather_packed(packed, from_batch(), slicing);
      if (carries_gradient()) out.leaf = make_leaf(*value);
      out.segments = value->segments;
    } else {
      slicing.samples = samples_in_order(slicing);
      slicing.elements = range.samples;
      *value = slice(*look(sources.front().value().object.get()), slicing);
    }
    out.value = std::move(value);
    out.elements = slicing.elements;
    out.traffic = slicing.traffic;
    return out;
  }

 private:
  /// Detaches at the edge and asks for the gradient there (EDG-5); returns the leaf.
  static at::Tensor make_leaf(Packed& value);
};
template <>
at::Tensor Edge<Packed>::make_leaf(Packed& value);

/// The gradients of one input port on the ranks of a consumer, for the producer.
struct EdgeGradient {
  std::shared_ptr<const EdgeBase> edge;
  std::vector<Packed> by_rank;   ///< Rows: the gradient; segments: what that rank held.
};

/// The adjoint of gather_packed for one rank of the source that holds `own`: replicas are summed in rank
/// order (Grad::kPartial) or one is taken (Grad::kReplicated), EDG-2. Throws Exception.
[[nodiscard]] at::Tensor adjoint_rows(const Segments& own, int own_rank, const EdgeGradient& gradient, EdgeTraffic& traffic);

}  // namespace troupe::detail

namespace troupe {

template <>
struct Payload<detail::Output> {
  static std::int64_t bytes(const detail::Output&) { return sizeof(detail::Output); }
  static std::uint64_t fingerprint(const detail::Output& value) { return reinterpret_cast<std::uintptr_t>(value.object.get()); }
};

}  // namespace troupe
