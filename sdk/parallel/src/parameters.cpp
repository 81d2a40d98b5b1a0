#include <troupe/parallel/parameters.hpp>

#include <utility>

#include <ATen/ATen.h>

#include <troupe/base/text.hpp>

namespace troupe {
namespace {

/// The part that the rank holds, without values.
at::Tensor empty_part(const ParameterSpec& spec, const StoreOptions& options) {
  const auto ranges = or_throw(shard_ranges(spec, options.mesh, options.rank));
  std::vector<std::int64_t> shape = spec.shape;
  if (spec.shard.dim >= 0) {
    std::int64_t& size = shape[static_cast<std::size_t>(spec.shard.dim)];
    size = 0;
    for (const Share& range : ranges) size += range.size;
  }
  return at::empty(shape, at::TensorOptions().dtype(options.dtype).device(options.device));
}

}  // namespace

at::Tensor ParameterStore::add(std::string_view name, std::vector<std::int64_t> shape, Initial initial, ParameterShard shard) {
  ParameterSpec spec{options_.prefix.empty() ? std::string(name) : options_.prefix + "." + std::string(name), std::move(shape), std::move(shard), initial};
  for (const auto& entry : entries_) {
    if (entry.spec.name == spec.name) {
      throw Exception(Error{.code = Errc::kInvalidArgument, .message = text("parameter ", spec.name, " is made twice; give its scope another name")});
    }
  }
  at::Tensor tensor = options_.device.is_meta() ? empty_part(spec, options_)
                                                : or_throw(initial_values(spec, options_.mesh, options_.rank, options_.seed, options_.dtype));
  tensor.set_requires_grad(true);
  entries_.push_back({std::move(spec), tensor});
  return tensor;
}

void ParameterStore::zero_grad() {
  for (const auto& entry : entries_) entry.tensor.mutable_grad() = at::Tensor();
}

}  // namespace troupe
