#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include <troupe/parallel/parameters.hpp>

namespace troupe {
namespace {

ParameterSpec spec(std::vector<std::int64_t> shape, ParameterShard shard, Initial initial = Initial::normal(0.5)) {
  return {"layer.weight", std::move(shape), std::move(shard), initial};
}

std::vector<at::Tensor> drawn(const ParameterSpec& spec, const Mesh& mesh) {
  std::vector<at::Tensor> out;
  for (int rank = 0; rank < mesh.size(); ++rank) out.push_back(or_throw(initial_values(spec, mesh, rank, 5, at::kDouble)));
  return out;
}

// NUM-8: values depend on seed, name and global index, never on rank or layout
TEST(InitialValues, AreTheSameInEveryLayout) {
  for (const auto& shard : {ParameterShard{0, "tp", 2}, ParameterShard{1, "tp"}, ParameterShard{0, "tp", 1, {4, 6, 2}}, ParameterShard{}}) {
    const ParameterSpec one = spec({12, 7}, shard);
    const at::Tensor serial = drawn(one, {})[0];
    for (const Mesh& mesh : {Mesh{{"tp", 2}}, Mesh{{"tp", 3}, {"dp", 2}}, Mesh{{"dp", 2}, {"tp", 5}}}) {
      EXPECT_TRUE(at::equal(or_throw(assemble(one, mesh, drawn(one, mesh))), serial)) << mesh.to_string() << " dim " << shard.dim;
    }
  }
}

TEST(InitialValues, FollowTheirDistribution) {
  const at::Tensor normal = drawn(spec({200, 200}, {}), {})[0];
  EXPECT_NEAR(normal.mean().item<double>(), 0, 0.01);
  EXPECT_NEAR(normal.std().item<double>(), 0.5, 0.01);
  const at::Tensor uniform = drawn(spec({200, 200}, {}, Initial::uniform(2)), {})[0];
  EXPECT_LT(uniform.abs().max().item<double>(), 2);
  EXPECT_NEAR(uniform.abs().mean().item<double>(), 1, 0.02);
  ParameterSpec other = spec({200, 200}, {});
  other.name = "layer.other";
  EXPECT_FALSE(at::equal(normal, drawn(other, {})[0]));
  EXPECT_TRUE(at::allclose(or_throw(initial_values(spec({9}, {}), {}, 0, 5, at::kFloat)).to(at::kDouble), drawn(spec({9}, {}), {})[0], 1e-6));
}

// case 8: more ranks than units leaves some with nothing
TEST(Shards, MayBeEmpty) {
  const ParameterSpec three = spec({3, 2}, {0, "tp"});
  const auto parts = drawn(three, {{"tp", 4}});
  EXPECT_EQ(parts[3].size(0), 0);
  EXPECT_EQ(or_throw(assemble(three, {{"tp", 4}}, parts)).size(0), 3);
}

// NUM-3: replicas that differ are found
TEST(Shards, ReplicasThatDifferAreNamed) {
  const ParameterSpec one = spec({4}, {});
  auto parts = drawn(one, {{"dp", 3}});
  parts[2] = parts[2] + 1e-16 + 1e-9;
  const auto wrong = assemble(one, {{"dp", 3}}, parts);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Errc::kMismatch);
  EXPECT_NE(wrong.error().message.find("between ranks 0 and 2"), std::string::npos) << wrong.error().message;
}

// NUM-5: what can't be divided is refused with the reason
TEST(Shards, ThatCanNotBeMadeAreRefused) {
  EXPECT_NE(shard_ranges(spec({10, 2}, {0, "tp", 4}), {{"tp", 2}}, 0).error().message.find("not divisible by the unit 4"), std::string::npos);
  EXPECT_NE(shard_ranges(spec({10, 2}, {2, "tp"}), {{"tp", 2}}, 0).error().message.find("shard dim 2"), std::string::npos);
  EXPECT_NE(shard_ranges(spec({10, 2}, {0, "tp", 1, {4, 4}}), {{"tp", 2}}, 0).error().message.find("add up to 10"), std::string::npos);
  EXPECT_EQ(shard_of(spec({10, 2}, {}), {}, 0, at::zeros({2, 10})).error().code, Errc::kMismatch);
}

TEST(Stores, RefuseANameTwice) {
  ParameterStore store;
  const Parameters parameters(store, "blocks");
  (void)parameters.scope("0").add("weight", {2}, Initial::constant(1));
  EXPECT_EQ(store.entries()[0].spec.name, "blocks.0.weight");
  EXPECT_THROW((void)parameters.scope("0").add("weight", {2}, Initial::constant(1)), Exception);
}

}  // namespace
}  // namespace troupe
