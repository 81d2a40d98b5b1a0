#include <troupe/layout/mesh.hpp>

#include <algorithm>
#include <charconv>

#include <troupe/base/text.hpp>

namespace troupe {

namespace {

/// "dp=2"
Result<Axis> parse_axis(std::string_view part, std::string_view source) {
  const auto equal = part.find('=');
  const std::string_view number = equal == std::string_view::npos ? std::string_view{} : part.substr(equal + 1);
  const char* end = number.data() + number.size();
  int size = 0;
  const auto [stop, error] = std::from_chars(number.data(), end, size);
  if (error == std::errc::result_out_of_range) {
    return fail(Errc::kInvalidArgument,
                text("mesh '", source, "': the size of an axis must fit 32 bits, got '", part, "'"));
  }
  if (number.empty() || error != std::errc{} || stop != end) {
    return fail(Errc::kInvalidArgument, text("mesh '", source, "': expected axis=size[,axis=size...] such as dp=2,sp=4, got '",
                                             part, "'"));
  }
  return Axis{std::string(part.substr(0, equal)), size};
}

}  // namespace

Result<Mesh> Mesh::parse(std::string_view source) {
  std::vector<Axis> axes;
  for (std::size_t begin = 0; !source.empty() && begin <= source.size();) {
    const std::size_t end = std::min(source.find(',', begin), source.size());
    auto axis = parse_axis(source.substr(begin, end - begin), source);
    if (!axis) return fail(std::move(axis.error()));
    axes.push_back(std::move(*axis));
    begin = end + 1;  // after a last comma this is the end: one more part, empty, which is refused
  }
  Mesh mesh(std::move(axes));
  if (auto checked = mesh.check(); !checked) return fail(std::move(checked.error()));
  return mesh;
}

Result<void> Mesh::check() const {
  std::int64_t ranks = 1;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    const Axis& axis = axes_[i];
    if (axis.name.empty()) return fail(Errc::kInvalidArgument, text("mesh ", to_string(), ": axis ", i, " has no name"));
    if (axis.size < 1) return fail(Errc::kInvalidArgument, text("mesh ", to_string(), ": axis ", axis.name, " must have size >= 1, got ", axis.size));
    for (std::size_t j = 0; j < i; ++j) {
      if (axes_[j].name == axis.name) return fail(Errc::kInvalidArgument, text("mesh ", to_string(), ": axis ", axis.name, " is named twice"));
    }
    ranks *= axis.size;
    if (ranks > (1 << 20)) return fail(Errc::kInvalidArgument, text("mesh ", to_string(), ": more than ", 1 << 20, " ranks"));
  }
  return {};
}

int Mesh::size() const noexcept {
  int ranks = 1;
  for (const Axis& axis : axes_) ranks *= axis.size;
  return ranks;
}

int Mesh::size(std::string_view name) const noexcept {
  for (const Axis& axis : axes_) {
    if (axis.name == name) return axis.size;
  }
  return 1;
}

bool Mesh::has(std::string_view name) const noexcept {
  return std::ranges::any_of(axes_, [&](const Axis& axis) { return axis.name == name; });
}

int Mesh::coordinate(int rank, std::string_view name) const noexcept {
  for (std::size_t i = axes_.size(); i-- > 0;) {
    if (axes_[i].name == name) return rank % axes_[i].size;
    rank /= axes_[i].size;
  }
  return 0;
}

int Mesh::index_in(int rank, std::span<const std::string> names) const noexcept {
  int index = 0;
  for (const auto& name : names) index = index * size(name) + coordinate(rank, name);
  return index;
}

int Mesh::size_of(std::span<const std::string> names) const noexcept {
  int product = 1;
  for (const auto& name : names) product *= size(name);
  return product;
}

std::vector<int> Mesh::peers(int rank, std::string_view name) const {
  int stride = 1;
  for (std::size_t i = axes_.size(); i-- > 0 && axes_[i].name != name;) stride *= axes_[i].size;
  if (!has(name)) return {rank};
  std::vector<int> out;
  const int first = rank - coordinate(rank, name) * stride;
  for (int i = 0; i < size(name); ++i) out.push_back(first + i * stride);
  return out;
}

std::string Mesh::to_string() const {
  std::string out;
  for (const Axis& axis : axes_) out += text(out.empty() ? "" : ",", axis.name, "=", axis.size);
  return out;
}

Share share_of(std::int64_t total, int parts, int index) noexcept {
  const std::int64_t each = total / parts;
  const std::int64_t more = total % parts;
  return {index * each + std::min<std::int64_t>(index, more), each + (index < more ? 1 : 0)};
}

}  // namespace troupe
