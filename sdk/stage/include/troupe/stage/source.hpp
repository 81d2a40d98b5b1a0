#pragma once

#include <any>
#include <memory>
#include <optional>
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
};
using SourceFactory = std::function<std::unique_ptr<SourceModule>(Rank&)>;

template <class S>
class SourceOf final : public SourceModule {
  using Batch = typename std::decay_t<decltype(std::declval<S&>().next())>::value_type;

 public:
  template <class Config>
  SourceOf(Rank& rank, const Config& config) : source_(make(rank, config)) {}

  [[nodiscard]] Output next() override {
    std::optional<Batch> batch = source_.next();
    if (!batch) return {};
    SampleCount count;
    count_samples(*batch, count);
    return {std::make_shared<Batch>(std::move(*batch)), count.count()};
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

  [[nodiscard]] NodeId id() const noexcept { return node_; }

 private:
  std::shared_ptr<detail::GraphCore> graph_;
  NodeId node_;
};

}  // namespace troupe
