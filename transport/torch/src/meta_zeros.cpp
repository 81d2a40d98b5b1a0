#include <ATen/core/LegacyTypeDispatch.h>

#include <troupe/base/result.hpp>
#include <troupe/base/text.hpp>
#include <troupe/torch/meta_scope.hpp>
#include "boxed_call.hpp"

namespace troupe::detail {
namespace {

constexpr std::int64_t kMostElements = 1 << 24;   // a run on more would cost more than check() is worth

[[noreturn]] void unknown(BoxedCall& call, const std::string& why) {
  throw Exception(Error{.code = Errc::kUnavailable, .message = text("operator ", call.name(), " has no shape function: LibTorch has no meta kernel for it, ", why)});
}

at::Tensor zeros_like(const at::Tensor& x) {
  if (!x.defined() || !x.is_meta()) return x;
  return at::empty_strided(x.sizes(), x.strides(), x.options().device(at::kCPU)).zero_();
}

/// The argument whose memory result `index` is, by the schema; -1: it is new.
int aliased(const BoxedCall& call, std::size_t index) {
  const auto* of_result = call.op().schema().returns()[index].alias_info();
  if (of_result == nullptr) return -1;
  for (std::size_t i = 0; i < call.size(); ++i) {
    const auto* of_argument = call.described(i).alias_info();
    if (of_argument != nullptr && of_argument->beforeSets() == of_result->beforeSets()) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

void run_on_zeros(BoxedCall& call) {
  std::int64_t elements = 0;
  std::vector<std::vector<at::Tensor>> given;
  for (std::size_t i = 0; i < call.size(); ++i) {
    given.push_back(call.tensors(i));
    for (const at::Tensor& tensor : given.back()) elements += tensor.numel();
  }
  if (elements > kMostElements) unknown(call, text("and ", elements, " elements are too many to try it on zeros"));
  if (call.op().hasTag(at::Tag::nondeterministic_seeded)) unknown(call, "and it draws random numbers");
  std::vector<int> alias;
  for (std::size_t i = 0; i < call.op().schema().returns().size(); ++i) alias.push_back(aliased(call, i));
  std::vector<std::vector<at::Tensor>> zeros(call.size());
  for (std::size_t i = 0; i < call.size(); ++i) {
    call.replace(i, zeros_like);
    zeros[i] = call.tensors(i);
  }
  try {
    const at::AutoDispatchBelowADInplaceOrView below;
    call.op().callBoxed(call.stack());
  } catch (const std::exception& error) {
    unknown(call, text("and on zeros it says: ", std::string_view(error.what()).substr(0, 200)));
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    for (std::size_t t = 0; call.writes(i) && t < given[i].size(); ++t) {
      if (given[i][t].sizes() != zeros[i][t].sizes()) given[i][t].resize_(zeros[i][t].sizes());
    }
  }
  const std::size_t begin = call.stack()->size() - alias.size();
  for (std::size_t i = 0; i < alias.size(); ++i) {
    c10::IValue& result = (*call.stack())[begin + i];
    if (!result.isTensor()) continue;
    result = alias[i] >= 0 && call.writes(static_cast<std::size_t>(alias[i])) ? given[static_cast<std::size_t>(alias[i])].front() : without_data(result.toTensor());
  }
}

}  // namespace troupe::detail
