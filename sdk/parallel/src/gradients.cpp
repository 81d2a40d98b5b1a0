#include <troupe/parallel/gradients.hpp>

#include <algorithm>
#include <vector>

#include <ATen/ATen.h>

#include <troupe/torch/tensor.hpp>

namespace troupe {
namespace {

constexpr std::int64_t kBucketBytes = 32LL << 20;

/// Parameters whose gradients travel as one message.
struct Bucket {
  std::vector<const ParameterEntry*> entries;
  std::int64_t elements = 0;
};

std::vector<Bucket> buckets_of(const ParameterStore& store) {
  std::vector<Bucket> out;
  for (const auto& entry : store.entries()) {
    const std::int64_t bytes = static_cast<std::int64_t>(entry.tensor.nbytes());
    if (out.empty() || out.back().elements * entry.tensor.element_size() + bytes > kBucketBytes) out.emplace_back();
    out.back().entries.push_back(&entry);
    out.back().elements += entry.tensor.numel();
  }
  return out;
}

}  // namespace

Result<void> sum_gradients(const ParameterStore& store, transport::Group& group) {
  if (group.size() == 1) return {};
  for (const Bucket& bucket : buckets_of(store)) {
    at::Tensor flat = at::zeros({bucket.elements}, bucket.entries.front()->tensor.options().requires_grad(false));
    std::int64_t at = 0;
    for (const auto* entry : bucket.entries) {
      const at::Tensor& gradient = entry->tensor.grad();
      if (gradient.defined()) flat.narrow(0, at, entry->tensor.numel()).copy_(gradient.reshape({-1}));
      at += entry->tensor.numel();
    }
    if (auto summed = group.all_reduce(lend(flat)); !summed) return summed;
    at = 0;
    for (const auto* entry : bucket.entries) {
      // own memory each: a view into the bucket would lie anywhere, and rounding depends on alignment (TRN-3)
      entry->tensor.mutable_grad() = flat.narrow(0, at, entry->tensor.numel()).view(entry->tensor.sizes()).clone();
      at += entry->tensor.numel();
    }
  }
  return {};
}

at::Tensor local_norm_square(const ParameterStore& store) {
  const Mesh& mesh = store.options().mesh;
  at::Tensor sum = at::zeros({}, at::kDouble);
  for (const auto& entry : store.entries()) {
    const bool counts = std::ranges::all_of(mesh.axes(), [&](const Axis& axis) {
      return (entry.spec.shard.dim >= 0 && axis.name == entry.spec.shard.axis) || mesh.coordinate(store.options().rank, axis.name) == 0;
    });
    if (!counts || !entry.tensor.grad().defined() || entry.tensor.numel() == 0) continue;
    sum = sum + at::linalg_vector_norm(entry.tensor.grad(), 2, at::OptionalIntArrayRef(), false, at::kDouble).square();
  }
  return sum;
}

}  // namespace troupe
