// Steps on shapes alone (NUM-6): every operator must tell the shapes and dtypes that the real one has, forward and backward.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <troupe/base/result.hpp>
#include <troupe/base/text.hpp>
#include <troupe/torch/meta_scope.hpp>

namespace troupe {
namespace {

using ::testing::HasSubstr;
using Tensors = std::vector<at::Tensor>;
using Compute = std::function<at::Tensor(const Tensors&)>;

std::string shapes(const Tensors& tensors) {
  std::string out;
  for (const auto& tensor : tensors) out += tensor.defined() ? text(tensor.toString(), tensor.sizes(), " ") : "- ";
  for (auto at = out.find("CPU"); at != std::string::npos; at = out.find("CPU")) out.erase(at, 3);
  for (auto at = out.find("Meta"); at != std::string::npos; at = out.find("Meta")) out.erase(at, 4);
  return out;
}

/// Result and gradients of the floating inputs.
std::string run(const Compute& compute, Tensors inputs) {
  Tensors leaves;
  for (auto& input : inputs) {
    if (input.is_floating_point()) leaves.push_back(input.set_requires_grad(true));
  }
  Tensors out = {compute(inputs)};
  if (out[0].requires_grad()) torch::autograd::backward({out[0].sum()}, {});
  for (const auto& leaf : leaves) out.push_back(leaf.grad());
  return shapes(out);
}

void expect_same(const char* what, const Compute& compute, const Tensors& inputs) {
  Tensors empty, full;
  for (const auto& input : inputs) {
    empty.push_back(without_data(input));
    full.push_back(input.detach().clone());
  }
  const std::string real = run(compute, full);
  const MetaScope scope;
  try {
    EXPECT_EQ(run(compute, empty), real) << what;
  } catch (const std::exception& error) {
    ADD_FAILURE() << what << ": " << std::string(error.what()).substr(0, 400);
  }
}

at::Tensor numbers(at::IntArrayRef sizes) { return at::arange(c10::multiply_integers(sizes), at::kFloat).sin().reshape(sizes); }
at::Tensor ids(std::vector<std::int64_t> values) { return at::tensor(values, at::kLong); }

TEST(MetaScope, OperatorsOfLanguageModelsTellTheirShapes) {
  const at::Tensor x = numbers({6, 8}), w = numbers({4, 8}), b = numbers({8}), q = numbers({2, 3, 6, 8});
  expect_same("linear", [](const Tensors& t) { return at::linear(t[0], t[1]); }, {x, w});
  expect_same("embedding", [](const Tensors& t) { return at::embedding(t[0], t[1]); }, {w, ids({3, 0, 1}).view({3, 1})});
  expect_same("index_select", [](const Tensors& t) { return t[0].index_select(-1, t[1]); }, {x, ids({3, 0, 1})});
  expect_same("where", [](const Tensors& t) { return at::where(t[0].gt(0), t[0], t[1].to(at::kDouble)); }, {x, b});
  expect_same("abs", [](const Tensors& t) { return t[0].abs(); }, {x});
  expect_same("flip, roll", [](const Tensors& t) { return t[0].flip({0}).roll({1}, {0}); }, {x});
  expect_same("layer_norm", [](const Tensors& t) { return at::layer_norm(t[0], {8}, t[1], t[2]); }, {x, b, b.clone()});
  expect_same("layer_norm, low", [](const Tensors& t) { return at::layer_norm(t[0], {8}); }, {x.to(at::kBFloat16)});
  expect_same("rms_norm", [](const Tensors& t) { return at::rms_norm(t[0], {8}, t[1], 1e-6); }, {x, b});
  expect_same("attention", [](const Tensors& t) { return at::scaled_dot_product_attention(t[0], t[0], t[0]); }, {q});
  expect_same("causal attention", [](const Tensors& t) { return at::scaled_dot_product_attention(t[0], t[0], t[0], {}, 0, true); }, {q});
  expect_same("masked attention", [](const Tensors& t) { return at::scaled_dot_product_attention(t[0], t[0], t[0], t[1]); }, {q, at::ones({6, 6}, at::kBool)});
  expect_same("grouped attention", [](const Tensors& t) { return at::scaled_dot_product_attention(t[0], t[1], t[1], {}, 0, true, {}, true); }, {q, numbers({2, 1, 6, 8})});
  expect_same("cross entropy", [](const Tensors& t) { return at::cross_entropy_loss(t[0], t[1], {}, at::Reduction::Sum); }, {x, ids({1, 2, 3, 4, 5, -100})});
  expect_same("logsumexp", [](const Tensors& t) { return t[0].logsumexp(1); }, {x});
  expect_same("dropout", [](const Tensors& t) { return at::dropout(t[0], 0.5, true); }, {x});
  expect_same("repeat_interleave", [](const Tensors& t) { return at::repeat_interleave(t[0], t[1], 0, 7); }, {x, ids({1, 2, 1, 1, 1, 1})});
}

TEST(MetaScope, OperatorsOfPicturesAndSoundTellTheirShapes) {
  const at::Tensor image = numbers({2, 3, 8, 10});
  expect_same("conv1d", [](const Tensors& t) { return at::conv1d(t[0], t[1], t[2], 2, 1); }, {numbers({2, 3, 9}), numbers({4, 3, 3}), numbers({4})});
  expect_same("conv2d", [](const Tensors& t) { return at::conv2d(t[0], t[1], {}, {2, 3}, {1, 0}, {1, 2}); }, {image, numbers({6, 3, 2, 3})});
  expect_same("grouped conv2d", [](const Tensors& t) { return at::conv2d(t[0], t[1], {}, at::IntArrayRef{1, 1}, at::IntArrayRef{0, 0}, at::IntArrayRef{1, 1}, 3); }, {image, numbers({6, 1, 2, 2})});
  expect_same("conv3d", [](const Tensors& t) { return at::conv3d(t[0], t[1], {}, {2, 4, 4}); }, {numbers({1, 3, 2, 8, 8}), numbers({5, 3, 2, 4, 4})});
  expect_same("transposed", [](const Tensors& t) { return at::conv_transpose2d(t[0], t[1], {}, {2, 2}, {1, 1}, {1, 0}); }, {image, numbers({3, 2, 3, 3})});
  expect_same("group_norm", [](const Tensors& t) { return at::group_norm(t[0], 3); }, {image});
  expect_same("interpolate", [](const Tensors& t) { return at::upsample_bilinear2d(t[0], at::IntArrayRef{3, 4}, false); }, {image});
}

// what LibTorch and we know no shape function for is tried on zeros
TEST(MetaScope, OthersAreTriedOnZeros) {
  const at::Tensor x = numbers({6, 8});
  expect_same("var", [](const Tensors& t) { return t[0].var(1); }, {x});
  expect_same("prod", [](const Tensors& t) { return t[0].prod(0); }, {x});
  expect_same("log_sigmoid", [](const Tensors& t) { return at::log_sigmoid(t[0]); }, {x});
  expect_same("glu", [](const Tensors& t) { return at::glu(t[0]); }, {x});
  expect_same("cdist", [](const Tensors& t) { return at::cdist(t[0], t[0]); }, {x});
  expect_same("batch_norm", [](const Tensors& t) { return at::batch_norm(t[0], {}, {}, {}, {}, true, 0.1, 1e-5, false); }, {x});
  expect_same("im2col", [](const Tensors& t) { return at::im2col(t[0].view({1, 1, 6, 8}), {2, 2}, {1, 1}, {0, 0}, {2, 2}); }, {x});
  const MetaScope scope;
  const at::Tensor large = at::empty({1 << 13, 1 << 13}, at::device(at::kMeta));
  try {
    (void)at::log_sigmoid(large);
    FAIL() << "a run on 256 MiB";
  } catch (const Exception& error) {
    EXPECT_EQ(error.error().code, Errc::kUnavailable);
    EXPECT_THAT(error.error().message, HasSubstr("operator aten::log_sigmoid_forward has no shape function"));
  }
}

// tables made by the constructor, indices from host integers
TEST(MetaScope, HostTensorsCountAsWithoutData) {
  const at::Tensor table = numbers({8}), index = ids({0, 2, 2, 1, 0, 2});
  expect_same("table", [&](const Tensors& t) { return t[0] * table + at::ones({6, 1}) * 2; }, {numbers({6, 8})});
  expect_same("double table", [&](const Tensors& t) { return t[0] * table.to(at::kDouble); }, {numbers({6, 8})});
  expect_same("numbers yield", [](const Tensors& t) { return t[0].to(at::kHalf) * 2.5 + 1; }, {numbers({6, 8})});
  expect_same("0-dim", [](const Tensors& t) { return t[0] * at::ones({}, at::kDouble); }, {numbers({6, 8})});
  expect_same("index_add", [&](const Tensors& t) { return at::zeros({3, 8}).index_add(0, index, t[0]); }, {numbers({6, 8})});
  expect_same("index_add of nothing", [&](const Tensors& t) { return at::zeros({3, 8}).index_add(0, index.narrow(0, 0, 0), t[0]); }, {numbers({0, 8})});
  expect_same("cat", [&](const Tensors& t) { return at::cat({t[0], at::ones({2, 8})}); }, {numbers({6, 8})});
  expect_same("index", [&](const Tensors& t) { return t[0].index({index}); }, {numbers({6, 8})});
}

void expect_refused(const char* what, const char* why, const std::function<void(const at::Tensor&)>& use) {
  const MetaScope scope;
  try {
    use(at::empty({6, 8}, at::device(at::kMeta)));
    ADD_FAILURE() << what << " was let through";
  } catch (const Exception& error) {
    EXPECT_EQ(error.error().code, Errc::kInvalidArgument) << what;
    EXPECT_THAT(error.error().message, HasSubstr(why)) << what;
  } catch (const std::exception& error) {
    ADD_FAILURE() << what << ": " << std::string(error.what()).substr(0, 200);
  }
}

// NUM-6
TEST(MetaScope, ReadsOfValuesAreRefused) {
  expect_refused("item", "aten::_local_scalar_dense reads a tensor's values on the host", [](const at::Tensor& x) { (void)x.sum().item<double>(); });
  expect_refused("condition", "reads a tensor's values", [](const at::Tensor& x) { (void)x.gt(0).any().item<bool>(); });
  expect_refused("equal", "aten::equal reads", [](const at::Tensor& x) { (void)at::equal(x, x); });
  expect_refused("cpu", "copies a tensor to the host", [](const at::Tensor& x) { (void)x.cpu(); });
  expect_refused("nonzero", "shape depends on values", [](const at::Tensor& x) { (void)x.nonzero(); });
  expect_refused("masked_select", "shape depends on values", [](const at::Tensor& x) { (void)x.masked_select(x > 0); });
  expect_refused("mask index", "shape depends on values", [](const at::Tensor& x) { (void)x.index({x > 0}); });
  expect_refused("unique", "shape depends on values", [](const at::Tensor& x) { (void)at::_unique2(x); });
  expect_refused("repeats", "shape depends on values", [](const at::Tensor& x) { (void)at::repeat_interleave(x, at::ones({6}, x.options().dtype(at::kLong)), 0); });
  expect_refused("into the host", "make that tensor by x.options()", [](const at::Tensor& x) { at::zeros({6, 8}).copy_(x); });
  expect_refused("sum on the host", "make that tensor by x.options()", [](const at::Tensor& x) { at::zeros({6, 8}).add_(x); });
}

TEST(MetaScope, AddressesOfDataThatIsNotThereThrow) {
  const MetaScope scope;
  const at::Tensor x = at::empty({6, 8}, at::device(at::kMeta)) * 2;
  EXPECT_ANY_THROW((void)x.data_ptr<float>());
  EXPECT_ANY_THROW((void)x.data_ptr());
  EXPECT_ANY_THROW((void)at::empty({6, 8}, at::device(at::kMeta)).data_ptr());
}

TEST(MetaScope, WrongShapesAreLibTorchsOwnErrors) {
  const MetaScope scope;
  const at::Tensor x = at::empty({6, 8}, at::device(at::kMeta));
  EXPECT_ANY_THROW((void)at::linear(x, at::empty({4, 9}, x.options())));
  EXPECT_ANY_THROW((void)at::conv1d(x.view({1, 6, 8}), at::empty({4, 5, 3}, x.options())));
  EXPECT_ANY_THROW((void)at::layer_norm(x, {7}));
  EXPECT_ANY_THROW((void)x.index_add(0, ids({0, 1}), at::empty({3, 8}, x.options())));
  EXPECT_ANY_THROW((void)at::where(x > 0, x, at::empty({5}, x.options())));
}

TEST(MetaScope, DrawsLeaveTheGeneratorAlone) {
  at::manual_seed(5);
  const at::Tensor expected = at::rand({4});
  at::manual_seed(5);
  {
    const MetaScope scope;
    (void)at::dropout(at::empty({6, 8}, at::device(at::kMeta)), 0.5, true);
    (void)at::rand({100});
    (void)at::randn({100});
    EXPECT_EQ(at::randperm(5)[3].item<std::int64_t>(), 3) << "an order that can index";
  }
  EXPECT_TRUE(at::equal(at::rand({4}), expected));
}

// EMB: registered for the process, but reached by nobody else
TEST(MetaScope, OtherCodeDoesNotNotice) {
  const at::Tensor meta = at::empty({3}, at::device(at::kMeta));
  { const MetaScope scope; }
  EXPECT_ANY_THROW((void)meta.abs()) << "aten has no new kernel";
  EXPECT_EQ((numbers({6, 8}) * 2).sum().item<float>(), (numbers({6, 8}) * 2).sum().item<float>());
}

}  // namespace
}  // namespace troupe
