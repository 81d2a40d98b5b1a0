#include <string>
#include <unordered_map>

#include <ATen/ExpandUtils.h>

#include <troupe/base/result.hpp>
#include <troupe/base/text.hpp>
#include <troupe/torch/meta_scope.hpp>
#include "boxed_call.hpp"

namespace troupe::detail {
namespace {

using Sizes = std::vector<std::int64_t>;
using Tell = void (*)(BoxedCall&);

[[noreturn]] void mismatch(BoxedCall& call, const std::string& why) { throw Exception(Error{.code = Errc::kMismatch, .message = text(call.name(), ": ", why)}); }

at::Tensor made(at::IntArrayRef sizes, const at::Tensor& like) { return at::empty(sizes, like.options().device(at::kMeta)); }
at::Tensor made(at::IntArrayRef sizes, const at::Tensor& like, c10::ScalarType dtype) { return at::empty(sizes, like.options().device(at::kMeta).dtype(dtype)); }

/// The last argument is where the result goes.
void into_out(BoxedCall& call, at::IntArrayRef sizes) {
  at::Tensor out = call.tensor(call.size() - 1);
  if (out.sizes() != sizes) out.resize_(sizes);
  call.result(out);
}

void like_first(BoxedCall& call) {
  const at::Tensor x = call.tensor(0);
  call.result(made(x.sizes(), x));
}
void like_first_out(BoxedCall& call) { into_out(call, Sizes(call.tensor(0).sizes().vec())); }
void broadcast_out(BoxedCall& call) { into_out(call, at::infer_size(call.tensor(0).sizes(), call.tensor(1).sizes())); }

Sizes where_sizes(BoxedCall& call) { return at::infer_size(call.tensor(0).sizes(), at::infer_size(call.tensor(1).sizes(), call.tensor(2).sizes())); }
void where(BoxedCall& call) { call.result(made(where_sizes(call), call.tensor(1), at::result_type(call.tensor(1), call.tensor(2)))); }
void where_out(BoxedCall& call) { into_out(call, where_sizes(call)); }

void index_select(BoxedCall& call) {
  const at::Tensor x = call.tensor(0);
  const at::Tensor index = call.tensor(2);
  if (index.dim() > 1) mismatch(call, text("the index must have one dim, got ", index.sizes()));
  Sizes sizes = x.sizes().vec();
  if (!sizes.empty()) sizes[static_cast<std::size_t>(at::maybe_wrap_dim(call.at(1).toInt(), x.dim()))] = index.numel();
  call.result(made(sizes, x));
}

/// self, dim, index, source, alpha: LibTorch's own takes the first row of a source that may have none.
void check_index_add(BoxedCall& call) {
  const at::Tensor self = call.tensor(0), index = call.tensor(2), source = call.tensor(3);
  const std::int64_t dim = at::maybe_wrap_dim(call.at(1).toInt(), self.dim());
  Sizes expected = self.sizes().vec();
  if (!expected.empty()) expected[static_cast<std::size_t>(dim)] = index.numel();
  if (index.dim() > 1 || source.sizes() != at::IntArrayRef(expected) || source.scalar_type() != self.scalar_type()) {
    mismatch(call, text("expected ", c10::toString(self.scalar_type()), " ", at::IntArrayRef(expected), " for index ", index.sizes(), ", got ", c10::toString(source.scalar_type()), " ", source.sizes()));
  }
}
void index_add(BoxedCall& call) {
  check_index_add(call);
  like_first(call);
}
void index_add_in_place(BoxedCall& call) {
  check_index_add(call);
  call.result(call.tensor(0));
}
void index_add_out(BoxedCall& call) {
  check_index_add(call);
  like_first_out(call);
}

/// grad_output, indices, num_weights, ...
void embedding_dense_backward(BoxedCall& call) {
  const at::Tensor gradient = call.tensor(0);
  call.result(made({call.at(2).toInt(), gradient.size(-1)}, gradient));
}

/// input, normalized_shape, weight?, bias?, eps
void native_layer_norm(BoxedCall& call) {
  const at::Tensor x = call.tensor(0);
  const Sizes normalized = call.numbers(1);
  const auto outer = static_cast<std::int64_t>(x.dim()) - static_cast<std::int64_t>(normalized.size());
  if (outer < 0 || x.sizes().slice(static_cast<std::size_t>(outer)) != at::IntArrayRef(normalized)) {
    mismatch(call, text("the last dims must be ", at::IntArrayRef(normalized), ", got ", x.sizes()));
  }
  for (const std::size_t parameter : {std::size_t{2}, std::size_t{3}}) {
    const at::Tensor scale = call.tensor(parameter);
    if (scale.defined() && scale.sizes() != at::IntArrayRef(normalized)) mismatch(call, text("weight and bias must be ", at::IntArrayRef(normalized), ", got ", scale.sizes()));
  }
  Sizes statistics = x.sizes().vec();
  std::fill(statistics.begin() + outer, statistics.end(), 1);
  const bool low = x.scalar_type() == at::kHalf || x.scalar_type() == at::kBFloat16;
  const auto dtype = low ? at::kFloat : x.scalar_type();
  call.result(made(x.sizes(), x), made(statistics, x, dtype), made(statistics, x, dtype));
}

/// Gradients like the tensors at `inputs`, where the last argument, a mask, asks for them.
void masked_gradients(BoxedCall& call, const at::Tensor (&like)[3]) {
  const auto wanted = call.at(call.size() - 1).toBoolList();
  at::Tensor out[3];
  for (std::size_t i = 0; i < 3; ++i) {
    if (wanted[i] && like[i].defined()) out[i] = made(like[i].sizes(), like[i]);
  }
  call.result(out[0], out[1], out[2]);
}

/// grad_out, input, normalized_shape, mean, rstd, weight?, bias?, output_mask
void native_layer_norm_backward(BoxedCall& call) { masked_gradients(call, {call.tensor(1), call.tensor(5), call.tensor(6)}); }

/// input [N, C, ...], weight, bias?, stride, padding, dilation, transposed, output_padding, groups
void convolution(BoxedCall& call) {
  const at::Tensor x = call.tensor(0);
  const at::Tensor weight = call.tensor(1);
  const Sizes stride = call.numbers(3), padding = call.numbers(4), dilation = call.numbers(5), more = call.numbers(7);
  const bool transposed = call.at(6).toBool();
  const std::int64_t groups = call.at(8).toInt();
  if (x.dim() != weight.dim() || x.dim() < 3) mismatch(call, text("expected an input of ", weight.dim(), " dims for weight ", weight.sizes(), ", got ", x.sizes()));
  const std::int64_t channels = transposed ? weight.size(0) : weight.size(1) * groups;
  if (x.size(1) != channels) mismatch(call, text("weight ", weight.sizes(), " in ", groups, " groups takes ", channels, " channels, got input ", x.sizes()));
  Sizes sizes = {x.size(0), transposed ? weight.size(1) * groups : weight.size(0)};
  for (std::size_t i = 0; i + 2 < static_cast<std::size_t>(x.dim()); ++i) {
    const auto of = [&](const Sizes& all) { return all[all.size() == 1 ? 0 : i]; };
    const auto dim = static_cast<std::int64_t>(i) + 2;
    const std::int64_t reach = of(dilation) * (weight.size(dim) - 1);
    const std::int64_t size = transposed ? (x.size(dim) - 1) * of(stride) - 2 * of(padding) + reach + of(more) + 1 : (x.size(dim) + 2 * of(padding) - reach - 1) / of(stride) + 1;
    if (x.size(dim) + 2 * of(padding) < reach + 1 && !transposed) mismatch(call, text("the kernel ", weight.sizes(), " is larger than the padded input ", x.sizes()));
    sizes.push_back(size);
  }
  call.result(made(sizes, x));
}

/// grad_output, input, weight, bias_sizes?, ..., output_mask
void convolution_backward(BoxedCall& call) {
  const at::Tensor gradient = call.tensor(0);
  masked_gradients(call, {call.tensor(1), call.tensor(2), made({gradient.size(1)}, gradient)});
}

/// repeats, output_size: asked with the size only
void repeat_interleave(BoxedCall& call) { call.result(made({call.at(1).toInt()}, call.tensor(0))); }

/// parameters, gradients, first, second, ...: all in place
void fused_adamw(BoxedCall& call) {
  const auto parameters = call.tensors(0);
  for (std::size_t argument = 1; argument <= 3; ++argument) {
    const auto others = call.tensors(argument);
    bool fits = others.size() == parameters.size();
    for (std::size_t i = 0; fits && i < others.size(); ++i) fits = others[i].sizes() == parameters[i].sizes() && others[i].scalar_type() == parameters[i].scalar_type();
    if (!fits) mismatch(call, text(call.described(argument).name(), " do not fit the parameters"));
  }
  call.result();
}

const std::unordered_map<std::string, Tell>& known() {
  static const auto* const all = new std::unordered_map<std::string, Tell>{
      {"aten::abs.out", like_first_out}, {"aten::sgn.out", like_first_out}, {"aten::logical_not.out", like_first_out}, {"aten::flip", like_first}, {"aten::roll", like_first},
      {"aten::logical_and.out", broadcast_out}, {"aten::logical_or.out", broadcast_out}, {"aten::logical_xor.out", broadcast_out},
      {"aten::where.self", where}, {"aten::where.self_out", where_out}, {"aten::index_select", index_select},
      {"aten::index_add", index_add}, {"aten::index_add_", index_add_in_place}, {"aten::index_add.out", index_add_out},
      {"aten::embedding_dense_backward", embedding_dense_backward},
      {"aten::native_layer_norm", native_layer_norm}, {"aten::native_layer_norm_backward", native_layer_norm_backward},
      {"aten::convolution", convolution}, {"aten::convolution_backward", convolution_backward}, {"aten::repeat_interleave.Tensor", repeat_interleave}, {"aten::_fused_adamw_", fused_adamw}};
  return *all;   // never destroyed: rank threads may outlive static objects
}

}  // namespace

bool tell_shapes(BoxedCall& call) {
  const auto found = known().find(call.name());
  if (found == known().end()) return false;
  found->second(call);
  return true;
}

}  // namespace troupe::detail
