#include <troupe/parallel/collectives.hpp>

#include <utility>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

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

struct GatherRows : Function<GatherRows> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const std::vector<std::int64_t>& rows, std::int64_t group) {
    ctx->saved_data["group"] = group;
    ctx->saved_data["rows"] = rows;
    std::vector<std::int64_t> sizes = x.sizes().vec();
    sizes[0] = 0;
    for (const auto count : rows) sizes[0] += count;
    at::Tensor out = at::empty(sizes, x.options());
    or_throw(reinterpret_cast<Group*>(group)->all_gather(lend(x.contiguous()), lend_all(row_blocks(out, rows))));
    return out;
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    Group& group = from_number<Group>(ctx->saved_data["group"]);
    const auto rows = ctx->saved_data["rows"].toIntVector();
    std::vector<std::int64_t> sizes = gradients[0].sizes().vec();
    sizes[0] = rows[static_cast<std::size_t>(group.rank())];
    at::Tensor mine = at::empty(sizes, gradients[0].options());
    or_throw(group.reduce_scatter(lend_all(row_blocks(gradients[0].contiguous(), rows)), lend(mine)));
    return {mine, {}, {}};
  }
};

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
  return group.size() == 1 ? x : GatherRows::apply(x, rows, as_number(&group));
}

}  // namespace troupe
