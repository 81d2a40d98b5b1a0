#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <troupe/actors/pool.hpp>
#include <troupe/stage/host.hpp>
#include <troupe/stage/tape.hpp>

namespace troupe {

/// What one stage asks for.
struct StageOptions {
  std::string name;                             ///< Unique in the graph; prefix of its parameters' names.
  Mesh mesh = {};
  Resources per_rank = {};
  std::string share_devices_with = {};          ///< Another stage's id().
  /// Axes over which the ranks see different rows, so that parameter gradients are partial sums.
  std::vector<std::string> data_axes = {"dp", "sp"};
  c10::ScalarType dtype = c10::ScalarType::Float;
  Duration construct_deadline = std::chrono::minutes(5);
  Duration queue_deadline = std::chrono::minutes(10);
  Duration collective_deadline = std::chrono::minutes(10);
};

namespace detail {
[[nodiscard]] Result<std::map<std::string, at::Tensor>> global_tensors(GraphCore& graph, NodeId stage, Export what, Duration timeout);
[[nodiscard]] Result<void> load_global(GraphCore& graph, NodeId stage, std::map<std::string, at::Tensor> global, Duration timeout);
[[nodiscard]] Result<void> load_stored(GraphCore& graph, NodeId stage, StoredParameters stored, Duration timeout);
[[nodiscard]] const Pool<StageHost>& stage_pool(const GraphCore& graph, NodeId stage);
[[nodiscard]] const std::string& node_name(const GraphCore& graph, NodeId node);
}  // namespace detail

/// A module of class M on its own pool and mesh. A value; lives with its graph.
template <class M>
class Stage {
  template <class>
  struct Decayed;
  template <class... P>
  struct Decayed<std::tuple<P...>> {
    using type = std::tuple<std::decay_t<P>...>;
  };

 public:
  using Inputs = typename Decayed<detail::forward_parameters<M>>::type;
  using Output = detail::forward_result<M>;

  Stage(std::shared_ptr<detail::GraphCore> graph, NodeId node) : graph_(std::move(graph)), node_(node) {}

  /// The I-th parameter of forward().
  template <std::size_t I>
    requires(I < std::tuple_size_v<Inputs>)
  [[nodiscard]] InPort<std::tuple_element_t<I, Inputs>> in() const {
    return {node_, static_cast<int>(I)};
  }

  /// The output, where forward() returns one Packed.
  [[nodiscard]] OutPort<Packed> out() const
    requires std::is_same_v<Output, Packed>
  {
    return {node_, "", 0, &detail::Whole<Packed>::look};
  }

  /// One member of the output struct.
  template <auto P>
    requires std::is_same_v<typename detail::MemberPointer<P>::Class, Output>
  [[nodiscard]] OutPort<Packed> out() const {
    return {node_, std::string(detail::verb_name<P>()), detail::field_index<Output, P>(), &detail::Member<P>::look};
  }

  /// Every parameter by its full name, put together from the shards: replicas must agree bit for bit
  /// (NUM-3), else kMismatch.
  [[nodiscard]] Result<std::map<std::string, at::Tensor>> parameters(Duration timeout) const {
    return detail::global_tensors(*graph_, node_, detail::Export::kParameters, timeout);
  }
  /// The gradients of the last step that kept them (StepOptions::keep_gradients), of the mean loss.
  [[nodiscard]] Result<std::map<std::string, at::Tensor>> gradients(Duration timeout) const {
    return detail::global_tensors(*graph_, node_, detail::Export::kGradients, timeout);
  }
  /// Sets every parameter from global tensors. Fails with: kMismatch naming what is missing or misshapen.
  [[nodiscard]] Result<void> load(std::map<std::string, at::Tensor> global, Duration timeout) const {
    return detail::load_global(*graph_, node_, std::move(global), timeout);
  }

  /// Sets every parameter from stored tensors; `name_of` gives the stored name of a full name. Each rank reads only its
  /// own parts, on its own thread, a tensor at a time. Fails with: kMismatch naming what is missing or misshapen,
  /// before anything is changed; what reading fails with, after which the stage is kInconsistent (POOL-7).
  [[nodiscard]] Result<void> load(std::shared_ptr<const TensorReader> reader, std::function<std::string(const std::string&)> name_of, Duration timeout) const {
    return detail::load_stored(*graph_, node_, {std::move(reader), std::move(name_of)}, timeout);
  }

  /// Runs a member function of M on every rank, without gradients: generation, inspection. All ranks get
  /// the same arguments; results by rank. Fails with what it throws on any rank.
  template <auto F, class... X>
    requires VerbCall<F, M, X...>
  [[nodiscard]] auto call(Duration timeout, const X&... x) const {
    using R = detail::verb_value<F>;
    detail::ModuleAction action{[arguments = std::make_tuple(x...)](void* module) -> std::shared_ptr<void> {
      return std::apply(
          [module](const auto&... a) -> std::shared_ptr<void> {
            if constexpr (std::is_same_v<R, std::monostate>) {
              (static_cast<M*>(module)->*F)(a...);
              return nullptr;
            } else {
              return std::make_shared<R>((static_cast<M*>(module)->*F)(a...));
            }
          },
          arguments);
    }};
    return unpack<R>(pool().template call<&detail::StageHost::run>(std::move(action)).get(timeout));
  }

  [[nodiscard]] NodeId id() const noexcept { return node_; }
  [[nodiscard]] const std::string& name() const { return detail::node_name(*graph_, node_); }
  [[nodiscard]] const Pool<detail::StageHost>& pool() const { return detail::stage_pool(*graph_, node_); }

 private:
  template <class R>
  static Result<std::vector<R>> unpack(Result<std::vector<detail::ActionResult>> results) {
    if (!results) return fail(std::move(results.error()));
    std::vector<R> values;
    for (auto& result : *results) {
      if constexpr (!std::is_same_v<R, std::monostate>) values.push_back(std::move(*static_cast<R*>(result.value.get())));
    }
    return values;
  }

  std::shared_ptr<detail::GraphCore> graph_;
  NodeId node_;
};

}  // namespace troupe
