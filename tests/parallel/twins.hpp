#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include <troupe/parallel/gradients.hpp>
#include <troupe/parallel/parameters.hpp>

#include "support/modules.hpp"
#include "support/ranks.hpp"

// A parallel computation against its serial twin: output, gradient of the input, gradient of every parameter.
namespace troupe::test {

/// A computation of one rank: makes its parameters and maps an input to an output.
using Computation = std::function<at::Tensor(const Parameters&, transport::Group& axis, const at::Tensor& x)>;

/// What one run left, on every rank the same or put together.
struct TwinRun {
  at::Tensor out, input_gradient;
  std::map<std::string, at::Tensor> gradients;
};

/// NUM-1's measure.
inline double error_of(const at::Tensor& a, const at::Tensor& b, double largest_gradient) {
  if (a.sizes() != b.sizes()) return 1e300;
  if (b.numel() == 0) return 0;
  const double scale = std::max(b.abs().max().item<double>(), 1e-6 * largest_gradient);
  return (a - b).abs().max().item<double>() / std::max(scale, 1e-300);
}

inline void expect_same(const TwinRun& parallel, const TwinRun& serial, double tolerance = 1e-10) {
  double largest = 0;
  for (const auto& [name, gradient] : serial.gradients) largest = std::max(largest, gradient.numel() ? gradient.abs().max().item<double>() : 0);
  EXPECT_LE(error_of(parallel.out, serial.out, 0), tolerance) << "the output";
  EXPECT_LE(error_of(parallel.input_gradient, serial.input_gradient, largest), tolerance) << "the gradient of the input";
  ASSERT_EQ(parallel.gradients.size(), serial.gradients.size());
  for (const auto& [name, gradient] : serial.gradients) EXPECT_LE(error_of(parallel.gradients.at(name), gradient, largest), tolerance) << name;
}

inline bool identical(const TwinRun& a, const TwinRun& b) {
  bool same = at::equal(a.out, b.out) && at::equal(a.input_gradient, b.input_gradient);
  for (const auto& [name, gradient] : a.gradients) same = same && at::equal(gradient, b.gradients.at(name));
  return same;
}

/// How the rows of x and of the output lie: all of them on every member, or `rows[m]` on member m.
struct TwinLayout {
  Axis axis = {"tp", 1};
  std::vector<std::int64_t> rows = {};
};

/// Every parameter's gradient, put together from the ranks' shards.
inline std::map<std::string, at::Tensor> whole_gradients(const std::vector<ParameterStore>& stores, const Mesh& mesh) {
  std::map<std::string, at::Tensor> out;
  for (std::size_t i = 0; i < stores[0].entries().size(); ++i) {
    const ParameterSpec& spec = stores[0].entries()[i].spec;
    std::vector<at::Tensor> parts;
    for (const auto& store : stores) {
      const at::Tensor& tensor = store.entries()[i].tensor;
      parts.push_back(tensor.grad().defined() ? tensor.grad() : at::zeros_like(tensor));
    }
    out[spec.name] = or_throw(assemble(spec, mesh, parts));
  }
  return out;
}

/// Runs `compute` on the members of one axis. Sharded rows: parameter gradients are summed over the axis.
inline TwinRun run_twin(const Computation& compute, const at::Tensor& x, const TwinLayout& layout) {
  const int size = layout.axis.size;
  const Mesh mesh{layout.axis};
  const bool sharded = !layout.rows.empty();
  const auto at = [](int rank) { return static_cast<std::size_t>(rank); };
  std::vector<ParameterStore> stores(at(size));
  std::vector<at::Tensor> outs(at(size)), inputs(at(size));
  on_ranks(size, [&](transport::Group& group, int rank) {
    ParameterStore& store = stores[at(rank)];
    store.configure({.prefix = "twin", .seed = 3, .dtype = at::kDouble, .mesh = mesh, .rank = rank});
    std::int64_t begin = 0;
    for (int member = 0; sharded && member < rank; ++member) begin += layout.rows[at(member)];
    const auto mine = [&](const at::Tensor& whole) { return (sharded ? whole.narrow(0, begin, layout.rows[at(rank)]) : whole).clone(); };
    inputs[at(rank)] = mine(x).set_requires_grad(x.is_floating_point());
    const at::Tensor out = compute(Parameters(store, "layer"), group, inputs[at(rank)]);
    std::vector<std::int64_t> shape = out.sizes().vec();
    if (sharded) shape[0] = x.size(0);
    out.backward(mine(scattered(shape, 5)));
    if (sharded) or_throw(sum_gradients(store, group));
    outs[at(rank)] = out.detach();
  });
  TwinRun run;
  std::vector<at::Tensor> input_gradients;
  for (const at::Tensor& input : inputs) input_gradients.push_back(input.grad().defined() ? input.grad() : at::zeros({0}));
  const auto joined = [&](const std::vector<at::Tensor>& parts) {
    if (sharded) return at::cat(parts, 0);
    for (const at::Tensor& part : parts) EXPECT_TRUE(at::equal(part, parts.front())) << "replicas are the same bits (NUM-3)";
    return parts.front();
  };
  run.out = joined(outs);
  run.input_gradient = joined(input_gradients);
  run.gradients = whole_gradients(stores, mesh);
  return run;
}

/// The parallel run equals the serial one, and a second parallel run is the same bits.
inline void expect_twin(const Computation& compute, const at::Tensor& x, const TwinLayout& layout) {
  const TwinRun parallel = run_twin(compute, x, layout);
  expect_same(parallel, run_twin(compute, x, {{layout.axis.name, 1}, {}}));
  EXPECT_TRUE(identical(parallel, run_twin(compute, x, layout))) << "two runs";
}

}  // namespace troupe::test
