#include <troupe/parallel/optimizer.hpp>

#include <utility>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

namespace troupe {

bool matches_pattern(std::string_view pattern, std::string_view name) noexcept {
  std::size_t p = 0;
  std::size_t n = 0;
  std::size_t star = std::string_view::npos;
  std::size_t resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

AdamW::AdamW(const ParameterStore& store, std::vector<AdamGroup> groups, AdamOptions options)
    : store_(&store), groups_(std::move(groups)), options_(options) {
  for (const auto& entry : store.entries()) {
    const at::Tensor like = entry.tensor.detach();
    slots_.push_back({at::zeros_like(like), at::zeros_like(like), at::zeros({}, at::kFloat)});
  }
}

void AdamW::step(double factor, const at::Tensor& scale) {
  const c10::NoGradGuard no_grad;
  for (const AdamGroup& group : groups_) {
    std::vector<at::Tensor> parameters, gradients, first, second, steps, held;
    for (const std::size_t member : group.members) {
      const at::Tensor& tensor = store_->entries()[member].tensor;
      steps.push_back(slots_[member].steps);   // also where nothing is held: all ranks count alike
      if (tensor.numel() == 0) continue;
      parameters.push_back(tensor);
      gradients.push_back(tensor.grad().defined() ? tensor.grad() : at::zeros_like(tensor));
      first.push_back(slots_[member].first);
      second.push_back(slots_[member].second);
      held.push_back(slots_[member].steps);
    }
    if (!steps.empty()) at::_foreach_add_(steps, 1);
    if (parameters.empty()) continue;
    // scaled before, not by the operator's grad_scale: that one is read as fp32
    at::_foreach_mul_(gradients, scale.to(gradients.front().scalar_type()));
    at::_fused_adamw_(parameters, gradients, first, second, {}, held, group.learning_rate * factor, options_.beta1, options_.beta2,
                      group.weight_decay, options_.epsilon, /*amsgrad=*/false, /*maximize=*/false);
  }
}

}  // namespace troupe
