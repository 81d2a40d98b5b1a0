#include <troupe/torch/meta_scope.hpp>

#include <algorithm>
#include <string_view>

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <troupe/base/result.hpp>
#include <troupe/base/text.hpp>
#include "boxed_call.hpp"

namespace troupe {
namespace detail {

std::string BoxedCall::name() const {
  const auto& schema = op_.schema();
  return schema.overload_name().empty() ? schema.name() : schema.name() + "." + schema.overload_name();
}

std::vector<at::Tensor> BoxedCall::tensors(std::size_t index) {
  std::vector<at::Tensor> out;
  replace(index, [&out](const at::Tensor& tensor) {
    if (tensor.defined()) out.push_back(tensor);
    return tensor;
  });
  return out;
}

namespace {

bool is_host(const at::Tensor& tensor) { return tensor.defined() && tensor.is_cpu(); }
bool is_meta(const at::Tensor& tensor) { return tensor.defined() && tensor.is_meta(); }

[[noreturn]] void refuse(BoxedCall& call, std::string_view what) {
  throw Exception(Error{.code = Errc::kInvalidArgument, .message = text("operator ", call.name(), " ", what)});
}

constexpr std::string_view kUseHostIntegers =
    ": the host would have to wait for the device in the middle of the step; take counts, lengths and choices from host integers (Segments, vectors of the batch), or keep the "
    "value in a tensor";

/// NUM-6: what would need values on the host.
void refuse_reads(BoxedCall& call) {
  const std::string name = call.name();
  if (call.op().hasTag(at::Tag::data_dependent_output)) refuse(call, text("reads a tensor's values on the host, as item() and equal() do", kUseHostIntegers));
  const bool knows_size = name == "aten::repeat_interleave.Tensor" && !call.at(1).isNone();
  // index() may be given a mask; then nonzero() comes next and is refused
  if (call.op().hasTag(at::Tag::dynamic_output_shape) && name != "aten::index.Tensor" && !knows_size) {
    refuse(call, text("makes a tensor whose shape depends on values", kUseHostIntegers));
  }
  for (std::size_t i = 0; name == "aten::_to_copy" && i < call.size(); ++i) {
    if (call.described(i).name() == "device" && call.at(i).isDevice() && call.at(i).toDevice().is_cpu()) refuse(call, text("copies a tensor to the host", kUseHostIntegers));
  }
  for (std::size_t i = 0; i < call.size(); ++i) {
    if (!call.writes(i) || !std::ranges::any_of(call.tensors(i), is_host)) continue;
    refuse(call, "writes values of the step into a tensor on the host: make that tensor by x.options(), so that it lies where x does");
  }
}

/// Numbers in the code ("x * 2") stay: their dtype yields to x's.
at::Tensor drop_data(const at::Tensor& tensor) { return is_host(tensor) && !tensor.unsafeGetTensorImpl()->is_wrapped_number() ? without_data(tensor) : tensor; }

/// Code that takes the address of data that is not there gets an exception from LibTorch.
void guard(const c10::IValue& value) {
  if (value.isTensor() && is_meta(value.toTensor()) && value.toTensor().has_storage()) {
    value.toTensor().storage().unsafeGetStorageImpl()->set_throw_on_mutable_data_ptr();
  }
}

/// A draw into a host tensor (tables, dropout masks): zeros, or the identity where indices are asked for.
bool skip_draw(BoxedCall& call) {
  if (!call.op().hasTag(at::Tag::nondeterministic_seeded) || call.size() == 0) return false;
  const bool is_order = call.op().schema().name() == "aten::randperm";
  for (std::size_t i = 0; i < call.size(); ++i) {
    const at::Tensor target = call.writes(i) ? call.tensor(i) : at::Tensor();
    if (!target.defined()) continue;
    if (is_order) target.resize_({call.at(0).toInt()}).copy_(at::arange(call.at(0).toInt(), target.options()));
    if (!is_order && !target.is_meta()) target.zero_();
    call.result(target);
    return true;
  }
  return false;
}

void run_call(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  BoxedCall call(op, stack);
  const c10::DispatchKeySet below = keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, c10::DispatchKey::Fake);
  bool has_meta = false;
  for (std::size_t i = 0; i < call.size() && !has_meta; ++i) has_meta = std::ranges::any_of(call.tensors(i), is_meta);
  if (skip_draw(call)) return;
  if (!has_meta) {
    op.redispatchBoxed(below, stack);
  } else {
    const bool is_update = call.name() == "aten::_fused_adamw_";   // counts its steps on the host
    if (!is_update) refuse_reads(call);
    for (std::size_t i = 0; i < call.size() && !is_update; ++i) call.replace(i, drop_data);
    if (!tell_shapes(call)) {
      const std::size_t first = stack->size() - call.size();
      const torch::jit::Stack saved(stack->end() - static_cast<std::ptrdiff_t>(call.size()), stack->end());
      try {
        op.redispatchBoxed(below, stack);
      } catch (const c10::NotImplementedError&) {
        stack->resize(first);   // it may have got anywhere
        stack->insert(stack->end(), saved.begin(), saved.end());
        BoxedCall again(op, stack);
        run_on_zeros(again);
      }
    }
  }
  for (std::size_t i = 0; i < op.schema().returns().size(); ++i) guard(stack->at(stack->size() - 1 - i));
}

/// Never taken back: a thread may be on its way through it. Kept where LeakSanitizer finds it.
void register_once() {
  [[gnu::used]] static torch::Library* const library = [] {
    auto* const made = new torch::Library(torch::Library::IMPL, "_", c10::DispatchKey::Fake, __FILE__, __LINE__);
    made->fallback(torch::CppFunction::makeFromBoxedFunction<&run_call>());
    return made;
  }();
}

}  // namespace
}  // namespace detail

struct MetaScope::Guard {
  c10::impl::IncludeDispatchKeyGuard fake{c10::DispatchKey::Fake};
};

MetaScope::MetaScope() {
  detail::register_once();
  guard_ = std::make_unique<Guard>();
}
MetaScope::~MetaScope() = default;

at::Tensor without_data(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.is_meta()) return tensor;
  return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta).requires_grad(false));
}

}  // namespace troupe
