#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <troupe/parallel/optimizer.hpp>
#include <troupe/stage/host.hpp>

namespace troupe::detail {

/// A stage that was reset, or that no optimizer was made for.
[[nodiscard]] Error no_optimizer(const std::string& stage);

/// What a forward leaves for its backward.
struct Kept {
  ForwardResult graph;
  std::vector<at::Tensor> leaves;
  std::vector<Segments> segments;
};

struct StageHost::State {
  State(Rank& r, StageSettings s) : rank(r), settings(std::move(s)), store(r.attachment<ParameterStore>()) {}

  Rank& rank;
  StageSettings settings;
  ParameterStore& store;
  std::unique_ptr<Module> module;
  std::vector<PortSpec> input_ports;
  std::map<std::uint64_t, Kept> kept;
  at::Tensor loss_sum;                 ///< Of the step so far, fp64.
  std::int64_t valid = 0;
  std::int64_t elements = 0;           ///< Over all ranks and micro-batches of the step (EDG-3).
  std::map<std::string, double> seconds;
  std::map<std::string, EdgeTraffic> traffic;
  std::optional<OptimizerOptions> options;
  std::unique_ptr<AdamW> adam;
  std::vector<at::Tensor> kept_gradients;

  /// The ranks whose gradients of replicated parameters are parts of one sum.
  transport::Group& data_group() const {
    std::vector<std::string> axes;
    for (const auto& axis : settings.data_axes) {
      if (rank.mesh().size(axis) > 1) axes.push_back(axis);
    }
    return axes.empty() ? rank.axis("no such axis: one member") : rank.group(axes);
  }

  void forget() {
    kept.clear();
    store.zero_grad();
    loss_sum = at::Tensor();
    valid = 0;
    elements = 0;
    seconds.clear();
    traffic.clear();
  }
};

}  // namespace troupe::detail
