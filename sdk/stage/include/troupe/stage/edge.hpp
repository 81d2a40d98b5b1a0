#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <troupe/actors/ref.hpp>
#include <troupe/stage/slice.hpp>

namespace troupe::detail {

/// What a stage's forward or a source's next leaves on its rank, type-erased: the detached value.
struct Output {
  std::shared_ptr<const void> object;  ///< Null from a source: the end of data.
  std::int64_t samples = 0;            ///< Of a source's batch.
  std::string state = {};              ///< Where the source stands after it, if it can say.
};

/// One forward argument as a rank received it.
struct InputValue {
  std::shared_ptr<void> value;   ///< A T.
  at::Tensor leaf;               ///< Where the gradient arrives; undefined when none flows.
  Segments segments;             ///< Of a packed input: what this rank holds.
  std::int64_t elements = 0;     ///< In the micro-batch over all ranks (EDG-3).
  EdgeTraffic traffic;
};

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
  bool shapes_only = false;      ///< What comes from a batch loses its data: graph.check().
  std::shared_ptr<transport::TransferCounters> counters;

  [[nodiscard]] virtual std::shared_ptr<EdgeBase> clone() const = 0;
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

  [[nodiscard]] std::shared_ptr<EdgeBase> clone() const override { return std::make_shared<Edge>(*this); }

  [[nodiscard]] InputValue gather(std::span<const Ref<Output>> sources, const MicroRange& range, int rank) const override {
    std::vector<const T*> values;
    for (const auto& source : sources) values.push_back(look(source.value().object.get()));
    if (!shapes_only || !from_batch()) return gather_values(values, range, rank);
    const T empty = shapes_of(*values.front());
    values = {&empty};
    return gather_values(values, range, rank);
  }

 private:
  [[nodiscard]] InputValue gather_values(const std::vector<const T*>& values, const MicroRange& range, int rank) const {
    SliceContext slicing = context(range, rank);
    InputValue out;
    auto value = std::make_shared<T>();
    if constexpr (std::is_same_v<T, Packed>) {
      *value = gather_packed(values, from_batch(), slicing);
      if (carries_gradient()) out.leaf = make_leaf(*value);
      out.segments = value->segments;
    } else {
      slicing.samples = samples_in_order(slicing);
      slicing.elements = range.samples;
      *value = slice(*values.front(), slicing);
    }
    out.value = std::move(value);
    out.elements = slicing.elements;
    out.traffic = slicing.traffic;
    return out;
  }

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
