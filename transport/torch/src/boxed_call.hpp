#pragma once

#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace troupe::detail {

/// An operator's call as LibTorch hands it to a fallback: its arguments on a stack, which its results replace.
class BoxedCall {
 public:
  BoxedCall(const c10::OperatorHandle& op, torch::jit::Stack* stack) : op_(op), stack_(stack), first_(stack->size() - op.schema().arguments().size()) {}

  [[nodiscard]] const c10::OperatorHandle& op() const noexcept { return op_; }
  [[nodiscard]] torch::jit::Stack* stack() const noexcept { return stack_; }
  [[nodiscard]] std::size_t size() const { return op_.schema().arguments().size(); }
  [[nodiscard]] const c10::Argument& described(std::size_t index) const { return op_.schema().arguments()[index]; }
  /// "aten::where.self"
  [[nodiscard]] std::string name() const;

  [[nodiscard]] c10::IValue& at(std::size_t index) { return (*stack_)[first_ + index]; }
  [[nodiscard]] at::Tensor tensor(std::size_t index) { return at(index).isTensor() ? at(index).toTensor() : at::Tensor(); }
  [[nodiscard]] std::vector<std::int64_t> numbers(std::size_t index) { return at(index).toIntVector(); }
  [[nodiscard]] bool writes(std::size_t index) const { return described(index).alias_info() != nullptr && described(index).alias_info()->isWrite(); }

  /// Every tensor of argument `index`, also of a list.
  [[nodiscard]] std::vector<at::Tensor> tensors(std::size_t index);
  /// Puts change(tensor) in the place of each.
  template <class Change>
  void replace(std::size_t index, Change change);

  /// Drops the arguments and leaves `results`.
  template <class... R>
  void result(R&&... results) {
    torch::jit::drop(*stack_, size());
    (stack_->emplace_back(std::forward<R>(results)), ...);
  }

 private:
  const c10::OperatorHandle& op_;
  torch::jit::Stack* stack_;
  std::size_t first_;
};

template <class Change>
void BoxedCall::replace(std::size_t index, Change change) {
  c10::IValue& value = at(index);
  if (value.isTensor()) {
    value = change(value.toTensor());
  } else if (value.isTensorList()) {
    c10::List<at::Tensor> changed;
    for (const at::Tensor& tensor : value.toTensorVector()) changed.push_back(change(tensor));
    value = std::move(changed);
  } else if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> changed;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) changed.push_back(tensor ? std::optional(change(*tensor)) : std::nullopt);
    value = std::move(changed);
  }
}

/// Gives `call` its results where Troupe knows their shapes and LibTorch does not. False: it does not know either.
/// Throws Exception (kMismatch) for arguments that do not fit.
[[nodiscard]] bool tell_shapes(BoxedCall& call);

/// Runs the operator on zeros of the same shapes and keeps the shapes of what comes out.
/// Throws Exception (kUnavailable) where that is too large or fails.
void run_on_zeros(BoxedCall& call);

}  // namespace troupe::detail
