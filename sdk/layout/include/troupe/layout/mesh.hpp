#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/base/result.hpp>

namespace troupe {

/// One named dimension of a mesh: "dp", "sp", "tp".
struct Axis {
  std::string name;
  int size = 1;
  friend bool operator==(const Axis&, const Axis&) = default;
};

/// How the ranks of a pool are arranged. The last axis varies fastest; a rank is a row-major index.
/// An axis that a mesh lacks has size 1 and coordinate 0 everywhere.
class Mesh {
 public:
  Mesh() = default;  ///< One rank, no axes.
  Mesh(std::initializer_list<Axis> axes) : axes_(axes) {}
  explicit Mesh(std::vector<Axis> axes) : axes_(std::move(axes)) {}

  /// Reads "dp=2,sp=4" (last axis fastest); "" is one rank.
  /// Fails with: kInvalidArgument for bad grammar, a size < 1, an axis named twice.
  [[nodiscard]] static Result<Mesh> parse(std::string_view text);

  /// Fails with: kInvalidArgument for a size < 1, an empty or repeated name, more than 2^20 ranks.
  [[nodiscard]] Result<void> check() const;

  [[nodiscard]] const std::vector<Axis>& axes() const noexcept { return axes_; }
  [[nodiscard]] int size() const noexcept;                              ///< Ranks in all.
  [[nodiscard]] int size(std::string_view axis) const noexcept;         ///< 1 when the mesh lacks it.
  [[nodiscard]] bool has(std::string_view axis) const noexcept;
  [[nodiscard]] int coordinate(int rank, std::string_view axis) const noexcept;

  /// Index of `rank` among all combinations of the named axes (first named slowest); 0 .. product-1.
  [[nodiscard]] int index_in(int rank, std::span<const std::string> axes) const noexcept;
  [[nodiscard]] int size_of(std::span<const std::string> axes) const noexcept;

  /// The ranks that share every other coordinate with `rank`, in the order of their coordinate on `axis`.
  [[nodiscard]] std::vector<int> peers(int rank, std::string_view axis) const;

  [[nodiscard]] std::string to_string() const;  ///< "dp=2,sp=4"; "" for one rank without axes.
  friend bool operator==(const Mesh&, const Mesh&) = default;

 private:
  std::vector<Axis> axes_;
};

/// Splits `total` into `parts` sizes that differ by at most one, larger ones first: uneven heads,
/// columns, samples. The same rule everywhere, so that two components never disagree.
struct Share {
  std::int64_t begin = 0;
  std::int64_t size = 0;
  [[nodiscard]] std::int64_t end() const noexcept { return begin + size; }
  friend bool operator==(const Share&, const Share&) = default;
};
[[nodiscard]] Share share_of(std::int64_t total, int parts, int index) noexcept;

}  // namespace troupe
