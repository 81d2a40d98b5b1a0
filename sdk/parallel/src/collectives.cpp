#include <troupe/parallel/collectives.hpp>

#include <numeric>
#include <utility>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <troupe/base/text.hpp>
#include <troupe/torch/tensor.hpp>

namespace troupe {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;
using transport::Group;

std::int64_t as_number(const void* pointer) { return reinterpret_cast<std::int64_t>(pointer); }
template <class T>
T& from_number(const at::IValue& value) {
  return *reinterpret_cast<T*>(value.toInt());
}

/// The sum over members, as a new tensor: what was given may be somebody's activation.
at::Tensor summed(const at::Tensor& x, Group& group) {
  at::Tensor out = x.clone(at::MemoryFormat::Contiguous);
  or_throw(group.all_reduce(lend(out)));
  return out;
}

struct CopyToGroup : Function<CopyToGroup> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, std::int64_t group) {
    ctx->saved_data["group"] = group;
    return x.view_as(x);
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    return {summed(gradients[0], from_number<Group>(ctx->saved_data["group"])), {}};
  }
};

struct ReduceFromGroup : Function<ReduceFromGroup> {
  static at::Tensor forward(AutogradContext*, const at::Tensor& x, std::int64_t group) { return summed(x, *reinterpret_cast<Group*>(group)); }
  static variable_list backward(AutogradContext*, variable_list gradients) { return {gradients[0], {}}; }
};

std::vector<transport::Tensor> lend_all(const std::vector<at::Tensor>& tensors) {
  std::vector<transport::Tensor> out;
  out.reserve(tensors.size());
  for (const auto& tensor : tensors) out.push_back(lend(tensor));
  return out;
}

/// Row blocks of `x` by member: views.
std::vector<at::Tensor> row_blocks(const at::Tensor& x, const std::vector<std::int64_t>& rows) { return x.split_with_sizes(rows, 0); }

/// Both directions of the Ulysses exchange.
at::Tensor exchange_to_heads(const at::Tensor& x, const ExchangeLayout& layout, Group& group) {
  std::int64_t all_rows = 0;
  for (const auto rows : layout.rows) all_rows += rows;
  const Share mine = layout.heads[static_cast<std::size_t>(group.rank())];
  std::vector<at::Tensor> send;
  for (const Share& heads : layout.heads) send.push_back(x.narrow(1, heads.begin, heads.size).contiguous());
  at::Tensor out = at::empty({all_rows, mine.size, x.size(2)}, x.options());
  or_throw(group.all_to_all(lend_all(send), lend_all(row_blocks(out, layout.rows))));
  return out;
}

at::Tensor exchange_to_rows(const at::Tensor& x, const ExchangeLayout& layout, Group& group) {
  const at::Tensor packed = x.contiguous();
  std::vector<at::Tensor> receive;
  for (const Share& heads : layout.heads) {
    receive.push_back(at::empty({layout.rows[static_cast<std::size_t>(group.rank())], heads.size, x.size(2)}, x.options()));
  }
  or_throw(group.all_to_all(lend_all(row_blocks(packed, layout.rows)), lend_all(receive)));
  return at::cat(receive, 1);
}

/// The layout is saved by value: forward's caller may be gone when backward runs.
struct RowsToHeads : Function<RowsToHeads> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const ExchangeLayout* layout, std::int64_t group) {
    save(ctx, *layout, group);
    return exchange_to_heads(x, *layout, *reinterpret_cast<Group*>(group));
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    return {exchange_to_rows(gradients[0], load(ctx), from_number<Group>(ctx->saved_data["group"])), {}, {}};
  }
  static void save(AutogradContext* ctx, const ExchangeLayout& layout, std::int64_t group) {
    ctx->saved_data["group"] = group;
    std::vector<std::int64_t> heads;
    for (const Share& share : layout.heads) heads.insert(heads.end(), {share.begin, share.size});
    ctx->saved_data["rows"] = layout.rows;
    ctx->saved_data["heads"] = heads;
  }
  static ExchangeLayout load(AutogradContext* ctx) {
    ExchangeLayout out;
    out.rows = ctx->saved_data["rows"].toIntVector();
    const auto heads = ctx->saved_data["heads"].toIntVector();
    for (std::size_t i = 0; i < heads.size(); i += 2) out.heads.push_back({heads[i], heads[i + 1]});
    return out;
  }
};

struct HeadsToRows : Function<HeadsToRows> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const ExchangeLayout* layout, std::int64_t group) {
    RowsToHeads::save(ctx, *layout, group);
    return exchange_to_rows(x, *layout, *reinterpret_cast<Group*>(group));
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    return {exchange_to_heads(gradients[0], RowsToHeads::load(ctx), from_number<Group>(ctx->saved_data["group"])), {}, {}};
  }
};

/// The members' shards of `dim`, in order.
at::Tensor gathered(const at::Tensor& x, const DimShards& shards, Group& group) {
  std::vector<std::int64_t> sizes = x.sizes().vec();
  const auto dim = static_cast<std::size_t>(shards.dim);
  std::vector<at::Tensor> parts;
  at::Tensor out;
  if (shards.dim == 0) {  // straight to where the rows belong
    sizes[0] = std::accumulate(shards.sizes.begin(), shards.sizes.end(), std::int64_t{0});
    out = at::empty(sizes, x.options());
    parts = row_blocks(out, shards.sizes);
  } else {
    for (const std::int64_t size : shards.sizes) {
      sizes[dim] = size;
      parts.push_back(at::empty(sizes, x.options()));
    }
  }
  or_throw(group.all_gather(lend(x.contiguous()), lend_all(parts)));
  return shards.dim == 0 ? out : at::cat(parts, shards.dim);
}

/// This member's slice, in memory of its own: a view would keep the whole and lie anywhere (TRN-3).
at::Tensor own_slice(const at::Tensor& x, const DimShards& shards, const Group& group) {
  const auto mine = static_cast<std::size_t>(group.rank());
  const std::int64_t begin = std::accumulate(shards.sizes.begin(), shards.sizes.begin() + group.rank(), std::int64_t{0});
  return x.narrow(shards.dim, begin, shards.sizes[mine]).clone(at::MemoryFormat::Contiguous);
}

/// The sum over members of their parts of this member's rows.
at::Tensor own_sum(const at::Tensor& x, const std::vector<std::int64_t>& rows, Group& group) {
  std::vector<std::int64_t> sizes = x.sizes().vec();
  sizes[0] = rows[static_cast<std::size_t>(group.rank())];
  at::Tensor out = at::empty(sizes, x.options());
  or_throw(group.reduce_scatter(lend_all(row_blocks(x.contiguous(), rows)), lend(out)));
  return out;
}

void save(AutogradContext* ctx, const DimShards& shards, std::int64_t group) {
  ctx->saved_data["group"] = group;
  ctx->saved_data["dim"] = static_cast<std::int64_t>(shards.dim);
  ctx->saved_data["sizes"] = shards.sizes;
}
DimShards load(AutogradContext* ctx) { return {static_cast<int>(ctx->saved_data["dim"].toInt()), ctx->saved_data["sizes"].toIntVector()}; }
Group& group_of(AutogradContext* ctx) { return from_number<Group>(ctx->saved_data["group"]); }

/// Three ways between shards and the whole, each the other way round in backward.
struct GatherRows : Function<GatherRows> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const DimShards* shards, std::int64_t group) {
    save(ctx, *shards, group);
    return gathered(x, *shards, *reinterpret_cast<Group*>(group));
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) { return {own_sum(gradients[0], load(ctx).sizes, group_of(ctx)), {}, {}}; }
};

struct ReduceScatterRows : Function<ReduceScatterRows> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const DimShards* shards, std::int64_t group) {
    save(ctx, *shards, group);
    return own_sum(x, shards->sizes, *reinterpret_cast<Group*>(group));
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) { return {gathered(gradients[0], load(ctx), group_of(ctx)), {}, {}}; }
};

struct GatherDim : Function<GatherDim> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const DimShards* shards, std::int64_t group) {
    save(ctx, *shards, group);
    return gathered(x, *shards, *reinterpret_cast<Group*>(group));
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) { return {own_slice(gradients[0], load(ctx), group_of(ctx)), {}, {}}; }
};

struct SplitDim : Function<SplitDim> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const DimShards* shards, std::int64_t group) {
    save(ctx, *shards, group);
    return own_slice(x, *shards, *reinterpret_cast<Group*>(group));
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) { return {gathered(gradients[0], load(ctx), group_of(ctx)), {}, {}}; }
};

/// What does not divide `x` as it should fails here with its reason, not in an operator of LibTorch's.
void check_shards(const char* what, const at::Tensor& x, const DimShards& shards, const Group& group, bool whole) {
  const auto wrong = [&](Errc code, const auto&... parts) { throw Exception(Error{.code = code, .message = text(what, ": ", parts...)}); };
  if (shards.sizes.size() != static_cast<std::size_t>(group.size())) wrong(Errc::kInvalidArgument, shards.sizes.size(), " sizes for a group of ", group.size());
  if (shards.dim < 0 || shards.dim >= x.dim()) wrong(Errc::kInvalidArgument, "dim ", shards.dim, " of a tensor ", x.sizes());
  const std::int64_t expected = whole ? std::accumulate(shards.sizes.begin(), shards.sizes.end(), std::int64_t{0})
                                      : shards.sizes[static_cast<std::size_t>(group.rank())];
  if (x.size(shards.dim) != expected) wrong(Errc::kMismatch, "expected ", expected, " along dim ", shards.dim, ", got ", x.sizes());
}

template <class F>
at::Tensor apply_between(const char* what, const at::Tensor& x, const DimShards& shards, Group& group, bool whole) {
  check_shards(what, x, shards, group, whole);
  return group.size() == 1 ? x : F::apply(x, &shards, as_number(&group));
}

}  // namespace

at::Tensor copy_to_group(const at::Tensor& x, Group& group) {
  return group.size() == 1 ? x : CopyToGroup::apply(x, as_number(&group));
}

at::Tensor reduce_from_group(const at::Tensor& x, Group& group) {
  return group.size() == 1 ? x : ReduceFromGroup::apply(x, as_number(&group));
}

at::Tensor rows_to_heads(const at::Tensor& x_nhd, const ExchangeLayout& layout, Group& group) {
  return group.size() == 1 ? x_nhd : RowsToHeads::apply(x_nhd, &layout, as_number(&group));
}

at::Tensor heads_to_rows(const at::Tensor& x_nhd, const ExchangeLayout& layout, Group& group) {
  return group.size() == 1 ? x_nhd : HeadsToRows::apply(x_nhd, &layout, as_number(&group));
}

at::Tensor gather_rows(const at::Tensor& x, const std::vector<std::int64_t>& rows, Group& group) {
  return apply_between<GatherRows>("gather_rows", x, {0, rows}, group, false);
}

at::Tensor reduce_scatter_rows(const at::Tensor& x, const std::vector<std::int64_t>& rows, Group& group) {
  return apply_between<ReduceScatterRows>("reduce_scatter_rows", x, {0, rows}, group, true);
}

at::Tensor gather_dim(const at::Tensor& x, const DimShards& shards, Group& group) { return apply_between<GatherDim>("gather_dim", x, shards, group, false); }

at::Tensor split_dim(const at::Tensor& x, const DimShards& shards, Group& group) { return apply_between<SplitDim>("split_dim", x, shards, group, true); }

}  // namespace troupe
