#include <troupe/parallel/parameters.hpp>

#include <cmath>
#include <numbers>

#include <ATen/ATen.h>

namespace troupe {
namespace {

/// splitmix64's finaliser (Steele, Lea, Flood 2014; public domain): a counter-based draw.
std::uint64_t scramble(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// FNV-1a: the same on every machine, unlike std::hash.
std::uint64_t name_key(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

/// In (0, 1).
double unit(std::uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1.0p-53; }

double draw(const Initial& initial, std::uint64_t key, std::int64_t index) {
  const std::uint64_t at = key + 2 * static_cast<std::uint64_t>(index);
  const double u = unit(scramble(at));
  if (initial.kind == Initial::Kind::kUniform) return initial.value * (2 * u - 1);
  const double v = unit(scramble(at + 1));
  return initial.value * std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);  // Box-Muller
}

}  // namespace

Result<at::Tensor> initial_values(const ParameterSpec& spec, const Mesh& mesh, int rank, std::uint64_t seed, c10::ScalarType dtype) {
  auto ranges = shard_ranges(spec, mesh, rank);
  if (!ranges) return fail(std::move(ranges.error()));
  const int dim = std::max(spec.shard.dim, 0);
  std::int64_t outer = 1;
  std::int64_t inner = 1;
  for (int i = 0; i < static_cast<int>(spec.shape.size()); ++i) (i < dim ? outer : inner) *= i == dim ? 1 : spec.shape[static_cast<std::size_t>(i)];
  const std::int64_t size = spec.shape.empty() ? 1 : spec.shape[static_cast<std::size_t>(dim)];
  if (spec.shard.dim < 0) *ranges = {{0, size}};
  std::vector<std::int64_t> shape = spec.shape;
  std::int64_t local = 0;
  for (const Share& range : *ranges) local += range.size;
  if (!shape.empty()) shape[static_cast<std::size_t>(dim)] = local;
  at::Tensor out = at::full(shape, spec.initial.value, at::kDouble);
  if (spec.initial.kind == Initial::Kind::kConstant) return out.to(dtype);
  const std::uint64_t key = scramble(scramble(seed) ^ name_key(spec.name));
  double* to = out.data_ptr<double>();
  for (std::int64_t o = 0; o < outer; ++o) {
    for (const Share& range : *ranges) {
      const std::int64_t begin = (o * size + range.begin) * inner;  // NUM-8: by the global index
      for (std::int64_t i = 0; i < range.size * inner; ++i) *to++ = draw(spec.initial, key, begin + i);
    }
  }
  return out.to(dtype);
}

}  // namespace troupe
