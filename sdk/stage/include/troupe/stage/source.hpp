#pragma once

#include <any>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <troupe/stage/edge.hpp>
#include <troupe/stage/tape.hpp>

namespace troupe {

struct SourceOptions {
  std::string name = "data";
  int prefetch = 2;              ///< Batches made ahead; bounds what the source holds.
  Resources per_rank = {};
};

namespace detail {

/// A user's source behind one interface.
class SourceModule {
 public:
  virtual ~SourceModule() = default;
  /// Null object: the end.
  [[nodiscard]] virtual Output next() = 0;
  [[nodiscard]] virtual bool can_resume() const = 0;   ///< Has state() and restore().
  [[nodiscard]] virtual std::string state() const = 0;
  virtual void restore(const std::string& state) = 0;
};
[[nodiscard]] Result<Ref<Output>> put_batch(GraphCore& graph, NodeId source, Output batch);
[[nodiscard]] Result<std::string> source_state(GraphCore& graph, NodeId source, Duration timeout);
[[nodiscard]] Result<void> restore_source(GraphCore& graph, NodeId source, const std::string& state, Duration timeout);
using SourceFactory = std::function<std::unique_ptr<SourceModule>(Rank&)>;

template <class S>
class SourceOf final : public SourceModule {
  using Batch = typename std::decay_t<decltype(std::declval<S&>().next())>::value_type;

 public:
  template <class Config>
  SourceOf(Rank& rank, const Config& config) : source_(make(rank, config)) {}

  [[nodiscard]] Output next() override {
    std::optional<Batch> batch = source_.next();
    if (!batch) return {nullptr, 0, state()};
    SampleCount count;
    count_samples(*batch, count);
    return {std::make_shared<Batch>(std::move(*batch)), count.count(), state()};
  }
  [[nodiscard]] bool can_resume() const override { return ResumableSource<S>; }
  [[nodiscard]] std::string state() const override {
    if constexpr (ResumableSource<S>) return source_.state();
    return {};
  }
  void restore([[maybe_unused]] const std::string& state) override {
    if constexpr (ResumableSource<S>) source_.restore(state);
  }

 private:
  template <class Config>
  static S make(Rank& rank, const Config& config) {
    if constexpr (std::is_constructible_v<S, Rank&, const Config&>) {
      return S(rank, config);
    } else {
      return S(config);
    }
  }
  S source_;
};

}  // namespace detail

/// A pool of one rank that makes batches. A value; lives with its graph.
template <class S>
class Source {
 public:
  using Batch = typename std::decay_t<decltype(std::declval<S&>().next())>::value_type;
  Source(std::shared_ptr<detail::GraphCore> graph, NodeId node) : graph_(std::move(graph)), node_(node) {}

  /// The member `P` of its batches: `data.out<&Batch::pixels>()`.
  template <auto P>
    requires std::is_same_v<typename detail::MemberPointer<P>::Class, Batch>
  [[nodiscard]] OutPort<typename detail::MemberPointer<P>::Type> out() const {
    return {node_, std::string(detail::verb_name<P>()), -1, &detail::Member<P>::look};
  }

  /// The next batch, by name: it stays where it was made (level B).
  /// Fails with: kEndOfData, kTimeout, kBadData for a batch without samples, what next() threw.
  [[nodiscard]] Result<GlobalBatch<Batch>> next(Duration timeout) const {
    auto ref = detail::next_batch(*graph_, node_, timeout);
    if (!ref) return fail(std::move(ref.error()));
    const std::int64_t samples = ref->value().samples;
    return GlobalBatch<Batch>(node_, std::move(*ref), {0, samples, samples});
  }

  /// A batch that the driver made itself, as if the source had: for prompts and probes. The source does not move.
  /// Fails with: as next().
  [[nodiscard]] Result<GlobalBatch<Batch>> put(Batch batch) const {
    detail::SampleCount count;
    detail::count_samples(batch, count);
    auto ref = detail::put_batch(*graph_, node_, {std::make_shared<Batch>(std::move(batch)), count.count()});
    if (!ref) return fail(std::move(ref.error()));
    return GlobalBatch<Batch>(node_, std::move(*ref), {0, count.count(), count.count()});
  }

  /// Where it stands after the batches that were taken; those made ahead do not count.
  /// Fails with: kInvalidArgument when S has no state() and restore().
  [[nodiscard]] Result<std::string> state(Duration timeout) const { return detail::source_state(*graph_, node_, timeout); }
  /// Goes on from `state`; batches made ahead are dropped. Fails with: kInvalidArgument, what restore() throws.
  [[nodiscard]] Result<void> restore(const std::string& state, Duration timeout) const { return detail::restore_source(*graph_, node_, state, timeout); }

  [[nodiscard]] NodeId id() const noexcept { return node_; }

 private:
  std::shared_ptr<detail::GraphCore> graph_;
  NodeId node_;
};

}  // namespace troupe
