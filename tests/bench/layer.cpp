#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <troupe/actors/runtime.hpp>
#include <troupe/parallel/linear.hpp>
#include <troupe/parallel/parameters.hpp>
#include <troupe/stage/environment.hpp>
#include <troupe/stage/tensor_payload.hpp>

#include "rows.hpp"

namespace bench {
namespace {

using namespace std::chrono_literals;
using namespace troupe;

constexpr std::int64_t kWidth = 128, kTokens = 16;

/// The two conjugate operators of tensor parallelism, as short as they can be written.
void sum_in_place(at::Tensor& x, transport::Group& group) {
  transport::Tensor lent{x.data_ptr(), {transport::DType::kF32, x.sizes().vec(), {}, {}}, nullptr, nullptr};
  or_throw(group.all_reduce(lent));
}
struct HandF : torch::autograd::Function<HandF> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& x, std::int64_t group) {
    ctx->saved_data["g"] = group;
    return x.view_as(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx, torch::autograd::variable_list g) {
    at::Tensor sum = g[0].clone(at::MemoryFormat::Contiguous);
    sum_in_place(sum, *reinterpret_cast<transport::Group*>(ctx->saved_data["g"].toInt()));
    return {sum, {}};
  }
};
struct HandG : torch::autograd::Function<HandG> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x, std::int64_t group) {
    at::Tensor sum = x.clone(at::MemoryFormat::Contiguous);
    sum_in_place(sum, *reinterpret_cast<transport::Group*>(group));
    return sum;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*, torch::autograd::variable_list g) { return {g[0], {}}; }
};

/// A tensor-parallel MLP: Troupe's layers, and the same operators by hand on the same weights.
class Layers {
 public:
  explicit Layers(Rank& rank)
      : tp_(rank.axis("tp")), store_(configure(rank)), up_(rank.parameters("up"), kWidth, 4 * kWidth, tp_), down_(rank.parameters("down"), 4 * kWidth, kWidth, tp_) {
    for (const auto& entry : store_.entries()) weights_.push_back(entry.tensor);
    input_ = at::ones({kTokens, kWidth}).requires_grad_(true);
  }

  double ours(int count) {
    return time(count, [&] { return down_.forward(at::gelu(up_.forward(input_))); });
  }
  double by_hand(int count) {
    const auto group = reinterpret_cast<std::int64_t>(&tp_);
    return time(count, [&] {
      const at::Tensor h = at::gelu(at::linear(HandF::apply(input_, group), weights_[0], weights_[1]));
      return HandG::apply(at::linear(h, weights_[2]), group) + weights_[3];
    });
  }

 private:
  static ParameterStore& configure(Rank& rank) {
    auto& store = rank.attachment<ParameterStore>();
    store.configure({.seed = 1, .mesh = rank.mesh(), .rank = rank.index()});
    return store;
  }
  template <class Forward>
  double time(int count, Forward forward) {
    const double start = now();
    for (int i = 0; i < count; ++i) {
      forward().sum().backward();
      store_.zero_grad();
      input_.mutable_grad() = at::Tensor();
    }
    return (now() - start) / count;
  }

  transport::Group& tp_;
  ParameterStore& store_;
  ColumnParallelLinear up_;
  RowParallelLinear down_;
  std::vector<at::Tensor> weights_;
  at::Tensor input_;
};

}  // namespace

std::vector<Row> layer() {
  RuntimeOptions options;
  options.environment = torch_environment();
  const Runtime runtime = or_throw(Runtime::create(std::move(options)));
  const auto pool = or_throw(runtime.pool<Layers>({.name = "layers", .mesh = {{"tp", 2}}}));
  or_throw(pool.ready(10s));
  (void)pool.call<&Layers::ours>(200).get(60s).value();
  (void)pool.call<&Layers::by_hand>(200).get(60s).value();
  return {with_target(paired("host.layer_vs_hand", "us", 15, [&] { return 1e6 * pool.call<&Layers::ours>(200).get(60s).value().front(); },
                             [&] { return 1e6 * pool.call<&Layers::by_hand>(200).get(60s).value().front(); }),
                      Of::kRatio, true, 1.1)};
}

}  // namespace bench
