// Ulysses attention over ragged items against its serial twin: case 8's lengths and heads, cuts inside items.
#include <cmath>

#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include <troupe/parallel/attention.hpp>
#include <troupe/parallel/linear.hpp>

#include "twins.hpp"

namespace troupe {
namespace {

using test::scattered;
using transport::Group;

constexpr std::int64_t kDim = 4;
constexpr std::int64_t kWidth = 5;

/// Items of these lengths, their rows cut evenly over `size` members wherever that falls.
std::vector<Segments> cut(const std::vector<std::int64_t>& lengths, int size) {
  std::int64_t total = 0;
  for (const auto length : lengths) total += length;
  std::vector<Segments> out(static_cast<std::size_t>(size));
  for (int member = 0; member < size; ++member) {
    const Share mine = share_of(total, size, member);
    std::int64_t begin = 0;
    for (std::size_t item = 0; item < lengths.size(); ++item) {
      const std::int64_t first = std::max(mine.begin, begin);
      const std::int64_t rows = std::min(mine.end(), begin + lengths[item]) - first;
      if (rows > 0) out[static_cast<std::size_t>(member)].push_back({.id = static_cast<std::int64_t>(item), .rows = rows, .first = first - begin});
      begin += lengths[item];
    }
  }
  return out;
}

struct Block {
  std::int64_t heads;
  std::vector<std::int64_t> lengths;
  Mask mask;

  at::Tensor operator()(const Parameters& parameters, Group& sp, const at::Tensor& x) const {
    const std::int64_t width = heads * kDim;
    const Linear qkv(parameters.scope("qkv"), kWidth, 3 * width, {.bias = false, .deviation = 0.5});
    const Linear out(parameters.scope("out"), width, kWidth, {.deviation = 0.5});
    const auto parts = qkv.forward(x).view({x.size(0), 3, heads, kDim}).unbind(1);
    return x + out.forward(ulysses_attention(parts[0], parts[1], parts[2], cut(lengths, sp.size()), sp, mask).reshape({x.size(0), width}));
  }
};

void expect_block(const Block& block, int size) {
  test::TwinLayout layout{{"sp", size}, {}};
  std::int64_t total = 0;
  for (const Segments& held : cut(block.lengths, size)) {
    layout.rows.push_back(rows_of(held));
    total += rows_of(held);
  }
  test::expect_twin(block, scattered({total, kWidth}), layout);
}

class Ulysses : public ::testing::TestWithParam<std::tuple<int, std::int64_t>> {};
INSTANTIATE_TEST_SUITE_P(, Ulysses, ::testing::Combine(::testing::Values(1, 2, 3, 4), ::testing::Values<std::int64_t>(1, 3, 7, 20)));

// case 8: one sequence of 1, 7, P-1, P, P+1 or a prime number of rows; members without rows or heads
TEST_P(Ulysses, OfOneSequenceOfAnyLengthEqualsItsTwin) {
  const auto [size, heads] = GetParam();
  for (const std::int64_t length : {1, 7, size - 1, size, size + 1, 13}) {
    if (length == 0) continue;
    SCOPED_TRACE(length);
    expect_block({heads, {length}, Mask::kNone}, size);
  }
}

TEST_P(Ulysses, OfItemsCutAnywhereEqualsItsTwin) {
  const auto [size, heads] = GetParam();
  for (const Mask mask : {Mask::kNone, Mask::kCausal}) {
    SCOPED_TRACE(mask == Mask::kCausal ? "causal" : "whole");
    expect_block({heads, {1, 7, 3, 3, 3, 13, 2}, mask}, size);
  }
}

// EDG-3: no rows anywhere
TEST(UlyssesAttention, WithoutAnyRowsTakesTheSamePath) {
  test::on_ranks(3, [](Group& sp, int) {
    const at::Tensor q = at::zeros({0, 2, 4}, at::kDouble).requires_grad_(true);
    const auto before = sp.traffic().operations;
    const at::Tensor out = ulysses_attention(q, q, q, std::vector<Segments>(3), sp);
    out.sum().backward();
    EXPECT_EQ(sp.traffic().operations - before, 8) << "4 forward, 4 backward, on every member";
    EXPECT_EQ(q.grad().sizes(), q.sizes());
  });
}

// counted bytes are the published formula's: each exchange keeps 1/P and sends the rest, 4 exchanges a layer
TEST(UlyssesAttention, SendsWhatTheFormulaSays) {
  for (const int size : {2, 3, 4}) {
    test::on_ranks(size, [size](Group& sp, int rank) {
      const std::int64_t heads = 12;
      const std::int64_t rows = 5;
      std::vector<Segments> shards;
      for (int member = 0; member < size; ++member) shards.push_back({{.id = member, .rows = rows}});
      const at::Tensor x = scattered({rows, heads, 4}, rank);
      const auto before = sp.traffic().sent_bytes;
      (void)ulysses_attention(x, x, x, shards, sp);
      EXPECT_EQ(sp.traffic().sent_bytes - before, 4 * static_cast<std::int64_t>(x.nbytes()) * (size - 1) / size);
    });
  }
}

// NUM-5, NUM-6: what the host integers contradict is refused with the reason
TEST(UlyssesAttention, RefusesWhatItsSegmentsContradict) {
  const auto code_of = [](const std::function<void()>& call) {
    try {
      call();
    } catch (const Exception& refused) {
      return refused.error().code;
    }
    return Errc::kInternal;
  };
  const auto sp = transport::solo_group("sp");
  const at::Tensor x = scattered({4, 2, 4});
  const std::vector<Segments> four{{{.rows = 4}}};
  EXPECT_EQ(code_of([&] { (void)ulysses_attention(x, x, x, {}, *sp); }), Errc::kInvalidArgument);
  EXPECT_EQ(code_of([&] { (void)ulysses_attention(x, x.narrow(1, 0, 1), x, four, *sp); }), Errc::kInvalidArgument);
  EXPECT_EQ(code_of([&] { (void)ulysses_attention(x, x, x, std::vector<Segments>{{{.rows = 3}}}, *sp); }), Errc::kMismatch);
  EXPECT_EQ(code_of([&] { (void)packed_attention(x, x, x, std::vector<std::int64_t>{}); }), Errc::kMismatch);
  EXPECT_EQ(packed_attention(x, x, x, std::vector<std::int64_t>{0, 4, 0}).sizes(), x.sizes());
}

/// softmax(q k^T / sqrt(d)) v, item by item and head by head.
at::Tensor written_out(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const std::vector<std::int64_t>& lengths, Mask mask) {
  std::vector<at::Tensor> parts;
  std::int64_t begin = 0;
  for (const auto length : lengths) {
    const auto heads = [&](const at::Tensor& x) { return x.narrow(0, begin, length).transpose(0, 1); };
    at::Tensor scores = at::matmul(heads(q), heads(k).transpose(1, 2)) / std::sqrt(static_cast<double>(q.size(2)));
    if (mask == Mask::kCausal) scores = scores.masked_fill(at::ones({length, length}, at::kBool).triu(1), -INFINITY);
    parts.push_back(at::matmul(scores.softmax(-1), heads(v)).transpose(0, 1));
    begin += length;
  }
  return at::cat(parts, 0);
}

// the twins call it on both sides: here it meets the formula
TEST(PackedAttention, IsTheFormulaInsideEachItem) {
  const at::Tensor q = scattered({11, 2, 4}, 1);
  const at::Tensor k = scattered({11, 2, 4}, 2);
  const at::Tensor v = scattered({11, 2, 4}, 3);
  for (const std::vector<std::int64_t>& lengths : {std::vector<std::int64_t>{11}, {3, 3, 5}, {1, 4, 4, 2}}) {
    for (const Mask mask : {Mask::kNone, Mask::kCausal}) {
      EXPECT_TRUE(at::allclose(packed_attention(q, k, v, lengths, mask), written_out(q, k, v, lengths, mask), 1e-12, 1e-13)) << ::testing::PrintToString(lengths);
    }
  }
}

// heads and rows are views of one product, as models make them: the same values as from memory of their own
TEST(PackedAttention, TakesAnyStrides) {
  const at::Tensor qkv = scattered({9, 3, 2, 4});
  const std::vector<std::int64_t> lengths{2, 2, 5};
  const auto views = qkv.unbind(1);
  const at::Tensor expected = packed_attention(views[0].contiguous(), views[1].contiguous(), views[2].contiguous(), lengths, Mask::kCausal);
  EXPECT_TRUE(at::allclose(packed_attention(views[0], views[1], views[2], lengths, Mask::kCausal), expected, 1e-13, 1e-15));
}

}  // namespace
}  // namespace troupe
