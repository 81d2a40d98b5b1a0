#include <troupe/train/safetensors.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <utility>

#include <ATen/ATen.h>

#include <troupe/base/text.hpp>
#include "pieces.hpp"
#include "posix.hpp"
#include "scalar_types.hpp"

namespace troupe {

struct SafetensorsFile::State {
  detail::File file;
  SafetensorsHeader header;
  mutable std::atomic<std::int64_t> bytes_read = 0;
  mutable std::atomic<std::int64_t> bytes_fetched = 0;
};

namespace {

/// The length and the JSON, or what there is of them when they can't be right: the parser says what is wrong.
Result<std::string> read_header_bytes(const detail::File& file) {
  constexpr std::int64_t kLengthBytes = 8;
  std::string out(static_cast<std::size_t>(std::min(file.size(), kLengthBytes)), '\0');
  if (auto ok = file.read(out.data(), 0, std::ssize(out)); !ok) return fail(ok.error());
  if (std::ssize(out) < kLengthBytes) return out;
  std::uint64_t length = 0;
  std::memcpy(&length, out.data(), sizeof length);
  if (length > static_cast<std::uint64_t>(kMaxSafetensorsHeader) || static_cast<std::int64_t>(length) > file.size() - kLengthBytes) return out;
  out.resize(kLengthBytes + length);
  if (auto ok = file.read(out.data() + kLengthBytes, kLengthBytes, static_cast<std::int64_t>(length)); !ok) return fail(ok.error());
  return out;
}

/// The part's shape, and its place in the file as rows [before, dim, after bytes].
Result<detail::Cut> cut_of(const StoredTensor& stored, const TensorPart& part, std::int64_t element_bytes, const std::string& what) {
  detail::Cut out{.begin = stored.begin, .shape = stored.shape};
  const auto wrong = [&](const auto&... parts) { return fail(Errc::kInvalidArgument, text(what, ": ", parts...)); };
  const int dims = static_cast<int>(stored.shape.size());
  if (part.dim >= dims) return wrong("asked for a part of dim ", part.dim, ", it has ", dims, " dims");
  if (part.dim < 0 && !part.ranges.empty()) return wrong("ranges without a dim");
  out.after = element_bytes;
  for (int i = 0; i < dims; ++i) (i < part.dim ? out.before : i == part.dim ? out.dim : out.after) *= stored.shape[static_cast<std::size_t>(i)];
  if (part.dim < 0) out.ranges = {{0, 1}};
  std::int64_t rows = 0;
  for (const Share& range : part.ranges) {
    if (range.begin < 0 || range.size < 0 || range.begin > out.dim - range.size) {
      return wrong("asked for [", range.begin, ", ", range.begin, " + ", range.size, ") of dim ", part.dim, ", which has ", out.dim);
    }
    if (range.size > 0) out.add(range);
    rows += range.size;
  }
  if (part.dim >= 0) out.shape[static_cast<std::size_t>(part.dim)] = rows;
  return out;
}

/// A bool of another bit pattern is undefined behaviour for whoever reads it.
Result<void> check_bools(const at::Tensor& tensor, const std::string& what) {
  const auto* at = static_cast<const unsigned char*>(tensor.const_data_ptr());
  const auto* bad = std::find_if(at, at + tensor.numel(), [](unsigned char one) { return one > 1; });
  if (bad == at + tensor.numel()) return {};
  return fail(Errc::kBadData, text(what, ": a BOOL must be stored as 0 or 1, got ", int{*bad}));
}

Result<at::Tensor> allocate(const std::vector<std::int64_t>& shape, c10::ScalarType type, const std::string& what) {
  try {
    return at::empty(shape, at::TensorOptions(type));
  } catch (...) {
    Error error = error_from_current_exception(Errc::kOutOfMemory);
    const Errc code = error.code;
    return fail(caused_by(std::move(error), code, text(what, ": no memory for ", at::IntArrayRef(shape), " of ", c10::toString(type))));
  }
}

}  // namespace

SafetensorsFile::SafetensorsFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
SafetensorsFile::~SafetensorsFile() = default;

Result<std::shared_ptr<const SafetensorsFile>> SafetensorsFile::open(const std::string& path) {
  static_assert(std::endian::native == std::endian::little, "the format is little-endian");
  auto file = detail::File::open(path);
  if (!file) return fail(file.error());
  const auto bytes = read_header_bytes(*file);
  if (!bytes) return fail(bytes.error());
  auto header = parse_safetensors_header(*bytes, file->size(), path);
  if (!header) return fail(header.error());
  auto state = std::make_unique<State>();
  state->file = std::move(*file);
  state->header = std::move(*header);
  return std::shared_ptr<const SafetensorsFile>(new SafetensorsFile(std::move(state)));
}

const SafetensorsHeader& SafetensorsFile::header() const noexcept { return state_->header; }
const std::string& SafetensorsFile::path() const noexcept { return state_->file.path(); }
bool SafetensorsFile::has(const std::string& name) const { return state_->header.tensors.contains(name); }
std::int64_t SafetensorsFile::bytes_read() const noexcept { return state_->bytes_read; }
std::int64_t SafetensorsFile::bytes_fetched() const noexcept { return state_->bytes_fetched; }

Result<void> SafetensorsFile::expect(const std::string& name, std::span<const std::int64_t> shape) const {
  const auto found = state_->header.tensors.find(name);
  if (found == state_->header.tensors.end()) return fail(Errc::kMismatch, text(path(), ": there is no tensor '", name, "'"));
  if (std::ranges::equal(found->second.shape, shape)) return {};
  return fail(Errc::kMismatch, text(path(), ": tensor '", name, "' must be ", at::IntArrayRef(shape.data(), shape.size()), ", got ", at::IntArrayRef(found->second.shape)));
}

struct SafetensorsFile::Found {
  std::string what;                ///< File and tensor, for messages.
  c10::ScalarType type;
  detail::Cut cut;
};

Result<SafetensorsFile::Found> SafetensorsFile::find(const std::string& name, const TensorPart& part) const {
  const auto found = state_->header.tensors.find(name);
  if (found == state_->header.tensors.end()) return fail(Errc::kMismatch, text(path(), ": there is no tensor '", name, "'"));
  const std::string what = text(path(), ", tensor '", name, "'");
  const auto type = detail::scalar_type(found->second.dtype);
  if (!type) return fail(Errc::kInternal, text(what, ": LibTorch has no dtype ", found->second.dtype));
  auto cut = cut_of(found->second, part, static_cast<std::int64_t>(c10::elementSize(*type)), what);
  if (!cut) return fail(cut.error());
  return Found{what, *type, std::move(*cut)};
}

Result<void> SafetensorsFile::fill(const Found& found, const at::Tensor& out) const {
  if (out.numel() == 0) return {};
  const auto fetched = detail::read_cut(state_->file, found.cut, static_cast<char*>(out.mutable_data_ptr()));
  if (!fetched) return fail(fetched.error());
  state_->bytes_read += static_cast<std::int64_t>(out.nbytes());
  state_->bytes_fetched += *fetched;
  return found.type == c10::ScalarType::Bool ? check_bools(out, found.what) : Result<void>{};
}

Result<at::Tensor> SafetensorsFile::read(const std::string& name, const TensorPart& part) const {
  const auto found = find(name, part);
  if (!found) return fail(found.error());
  auto out = allocate(found->cut.shape, found->type, found->what);
  if (!out) return out;
  if (auto ok = fill(*found, *out); !ok) return fail(ok.error());
  return out;
}

Result<void> SafetensorsFile::read_into(const std::string& name, const TensorPart& part, const at::Tensor& out) const {
  const auto found = find(name, part);
  if (!found) return fail(found.error());
  if (out.sizes() != at::IntArrayRef(found->cut.shape)) {
    return fail(Errc::kMismatch, text(found->what, ": the part is ", at::IntArrayRef(found->cut.shape), ", its place is ", out.sizes()));
  }
  if (out.scalar_type() != found->type || !out.is_cpu() || !out.is_contiguous() || out.is_neg() || out.is_conj()) return TensorReader::read_into(name, part, out);
  if (!out.is_inference()) out.unsafeGetTensorImpl()->bump_version();   // as any write in place: autograd must see it
  return fill(*found, out);
}

Result<std::map<std::string, at::Tensor>> read_safetensors(const std::string& path) {
  const auto file = SafetensorsFile::open(path);
  if (!file) return fail(file.error());
  std::map<std::string, at::Tensor> out;
  for (const auto& [name, stored] : (*file)->header().tensors) {
    auto tensor = (*file)->read(name);
    if (!tensor) return fail(tensor.error());
    out.emplace(name, std::move(*tensor));
  }
  return out;
}

}  // namespace troupe
