#include "host_state.hpp"

#include <algorithm>
#include <iterator>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <troupe/base/text.hpp>

namespace troupe::detail {
namespace {

std::vector<AdamGroup> groups_of(const OptimizerOptions& options, const ParameterStore& store) {
  std::vector<AdamGroup> out;
  for (const ParameterGroup& group : options.groups) out.push_back({{}, group.learning_rate, group.weight_decay});
  for (std::size_t member = 0; member < store.entries().size(); ++member) {
    for (std::size_t group = 0; group < out.size(); ++group) {
      if (!matches_pattern(options.groups[group].pattern, store.entries()[member].spec.name)) continue;
      out[group].members.push_back(member);
      break;  // the first that matches counts
    }
  }
  return out;
}

constexpr Export kMoments[] = {Export::kFirstMoments, Export::kSecondMoments, Export::kUpdates};

bool is_moment(Export what) { return std::ranges::find(kMoments, what) != std::end(kMoments); }

const at::Tensor& moment_of(const AdamW::Slot& slot, Export what) {
  return what == Export::kFirstMoments ? slot.first : what == Export::kSecondMoments ? slot.second : slot.steps;
}

/// How it lies over the ranks: moments as their parameter, the number of updates on all alike.
ParameterSpec spec_of(const ParameterSpec& parameter, Export what) {
  ParameterSpec out = parameter;
  if (!is_moment(what)) return out;
  out.name = moment_name(what, parameter.name);
  if (what == Export::kUpdates) {
    out.shape = {};
    out.shard = {};
  }
  return out;
}

}  // namespace

std::string moment_name(Export what, const std::string& full) {
  return (what == Export::kFirstMoments ? "first." : what == Export::kSecondMoments ? "second." : "updates.") + full;
}

Error no_optimizer(const std::string& stage) {
  return {.code = Errc::kInvalidArgument, .message = text("stage ", stage, " has no optimizer (a reset forgets it); make one by graph.optimizer()")};
}

ActionResult StageHost::run(const ModuleAction& action) {
  const c10::NoGradGuard no_grad;
  return {action.run(state_->module->object())};
}

StageDescription StageHost::describe() const {
  StageDescription out;
  out.inputs = state_->input_ports;
  out.outputs = state_->module->output_ports();
  for (const auto& entry : state_->store.entries()) {
    out.parameter_bytes += static_cast<std::int64_t>(entry.tensor.nbytes());
    out.parameters += entry.tensor.numel();
    out.names.push_back(entry.spec.name);
  }
  return out;
}

NamedShards StageHost::shards(Export what) const {
  NamedShards out;
  const auto& entries = state_->store.entries();
  if (what == Export::kGradients && state_->kept_gradients.size() != entries.size()) {
    throw Exception(Error{.code = Errc::kInvalidArgument,
                          .message = text("stage ", state_->settings.name, " kept no gradients; set StepOptions::keep_gradients")});
  }
  if (is_moment(what) && !state_->adam) throw Exception(no_optimizer(state_->settings.name));
  for (std::size_t i = 0; i < entries.size(); ++i) {
    out.specs.push_back(spec_of(entries[i].spec, what));
    out.tensors.push_back(what == Export::kParameters  ? entries[i].tensor.detach()
                          : what == Export::kGradients ? state_->kept_gradients[i]
                                                       : moment_of(state_->adam->slots()[i], what));
  }
  return out;
}

void StageHost::load(const std::map<std::string, at::Tensor>& global) {
  const c10::NoGradGuard no_grad;
  State& s = *state_;
  std::vector<at::Tensor> parts;  // all are found before any is written
  for (const auto& entry : s.store.entries()) {
    const auto found = global.find(entry.spec.name);
    if (found == global.end()) {
      throw Exception(Error{.code = Errc::kMismatch, .message = text("parameter ", entry.spec.name, " is missing from what is loaded")});
    }
    parts.push_back(or_throw(shard_of(entry.spec, s.rank.mesh(), s.rank.index(), found->second)));
  }
  for (std::size_t i = 0; i < parts.size(); ++i) s.store.entries()[i].tensor.copy_(parts[i]);
}

void StageHost::expect_stored(const StoredParameters& stored) const {
  for (const auto& entry : state_->store.entries()) or_throw(stored.reader->expect(stored.name_of(entry.spec.name), entry.spec.shape));
}

void StageHost::load_stored(const StoredParameters& stored) {
  const c10::NoGradGuard no_grad;
  State& s = *state_;
  for (const auto& entry : s.store.entries()) {
    const auto ranges = or_throw(shard_ranges(entry.spec, s.rank.mesh(), s.rank.index()));
    entry.tensor.copy_(or_throw(stored.reader->read(stored.name_of(entry.spec.name), {entry.spec.shard.dim, ranges})));
  }
}

void StageHost::expect_moments(const StoredParameters& stored) const {
  if (!state_->adam) throw Exception(no_optimizer(state_->settings.name));
  for (const auto& entry : state_->store.entries()) {
    for (const Export what : kMoments) {
      const ParameterSpec spec = spec_of(entry.spec, what);
      or_throw(stored.reader->expect(stored.name_of(spec.name), spec.shape));
    }
  }
}

void StageHost::load_moments(const StoredParameters& stored) {
  const c10::NoGradGuard no_grad;
  const State& s = *state_;
  for (std::size_t i = 0; i < s.store.entries().size(); ++i) {
    for (const Export what : kMoments) {
      const ParameterSpec spec = spec_of(s.store.entries()[i].spec, what);
      const auto ranges = or_throw(shard_ranges(spec, s.rank.mesh(), s.rank.index()));
      moment_of(s.adam->slots()[i], what).copy_(or_throw(stored.reader->read(stored.name_of(spec.name), {spec.shard.dim, ranges})));
    }
  }
}

void StageHost::set_optimizer(const OptimizerOptions& options) {
  State& s = *state_;
  s.options = options;
  s.adam = std::make_unique<AdamW>(s.store, groups_of(options, s.store), AdamOptions{options.beta1, options.beta2, options.epsilon});
}

}  // namespace troupe::detail
