#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <troupe/layout/mesh.hpp>

namespace troupe {

/// Which part of a parameter each rank holds: `dim` divided over the mesh axis `axis` by share_of(), in
/// multiples of `unit` (a head's rows). `parts` are the sizes of fused blocks along `dim` (q, k, v or gate,
/// up), each divided by itself; empty: one block. dim -1: replicated.
struct ParameterShard {
  int dim = -1;
  std::string axis = {};
  std::int64_t unit = 1;
  std::vector<std::int64_t> parts = {};
};

/// Initial values: a draw that depends on (seed, full name, global index) only (NUM-8).
struct Initial {
  enum class Kind : std::uint8_t { kConstant, kNormal, kUniform } kind = Kind::kConstant;
  double value = 0;  ///< The constant, the standard deviation, or the bound of [-bound, bound).
  static Initial constant(double value) { return {Kind::kConstant, value}; }
  static Initial normal(double deviation) { return {Kind::kNormal, deviation}; }
  static Initial uniform(double bound) { return {Kind::kUniform, bound}; }
};

struct ParameterSpec {
  std::string name;                 ///< Full: "vision.blocks.0.qkv.weight".
  std::vector<std::int64_t> shape;  ///< Global.
  ParameterShard shard = {};
  Initial initial = {};
};

/// The ranges of the global `dim` that coordinate-bearer `rank` holds, in order; the whole when replicated.
/// Fails with: kInvalidArgument when parts do not add up or `unit` does not divide them, naming the parameter.
[[nodiscard]] Result<std::vector<Share>> shard_ranges(const ParameterSpec& spec, const Mesh& mesh, int rank);

/// This rank's part of a global tensor. Fails with: kMismatch when the shape is another.
[[nodiscard]] Result<at::Tensor> shard_of(const ParameterSpec& spec, const Mesh& mesh, int rank, const at::Tensor& global);

/// The global tensor from every rank's part. Replicas must be the same bits (NUM-3): else kMismatch naming
/// the ranks.
[[nodiscard]] Result<at::Tensor> assemble(const ParameterSpec& spec, const Mesh& mesh, std::span<const at::Tensor> by_rank);

/// Initial values of the part that `rank` holds. [local shape]
[[nodiscard]] Result<at::Tensor> initial_values(const ParameterSpec& spec, const Mesh& mesh, int rank, std::uint64_t seed, c10::ScalarType dtype);

struct StoreOptions {
  std::string prefix = {};                    ///< Of every name: the stage's.
  std::uint64_t seed = 0;
  c10::ScalarType dtype = c10::ScalarType::Float;
  Mesh mesh = {};
  int rank = 0;
  c10::Device device = c10::DeviceType::CPU;  ///< Meta: shapes without values.
};

struct ParameterEntry {
  ParameterSpec spec;
  at::Tensor tensor;   ///< This rank's part: a leaf that requires a gradient.
};

/// All parameters of one rank, in the order they were made. Thread: the rank's own.
class ParameterStore {
 public:
  void configure(StoreOptions options) { options_ = std::move(options); }
  [[nodiscard]] const StoreOptions& options() const noexcept { return options_; }

  /// Throws Exception (kInvalidArgument) for a name that exists, an axis or dim that can't be.
  at::Tensor add(std::string_view name, std::vector<std::int64_t> shape, Initial initial, ParameterShard shard);

  [[nodiscard]] const std::vector<ParameterEntry>& entries() const noexcept { return entries_; }
  void zero_grad();

 private:
  StoreOptions options_;
  std::vector<ParameterEntry> entries_;
};

/// A name prefix over a store: what a module makes its parameters with.
class Parameters {
 public:
  Parameters(ParameterStore& store, std::string prefix) : store_(&store), prefix_(std::move(prefix)) {}
  /// From a troupe::Rank: `rank.parameters("blocks")`.
  template <class RankLike>
  Parameters(RankLike& rank, std::string_view prefix) : Parameters(rank.template attachment<ParameterStore>(), std::string(prefix)) {}

  /// A new parameter "<prefix>.<name>"; returns this rank's part.
  at::Tensor add(std::string_view name, std::vector<std::int64_t> shape, Initial initial, ParameterShard shard = {}) const {
    return store_->add(prefix_.empty() ? std::string(name) : prefix_ + "." + std::string(name), std::move(shape), initial, std::move(shard));
  }
  [[nodiscard]] Parameters scope(std::string_view name) const {
    return {*store_, prefix_.empty() ? std::string(name) : prefix_ + "." + std::string(name)};
  }
  [[nodiscard]] const StoreOptions& options() const noexcept { return store_->options(); }

 private:
  ParameterStore* store_;
  std::string prefix_;
};

}  // namespace troupe
