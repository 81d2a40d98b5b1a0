#include <troupe/train/safetensors.hpp>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ATen/ATen.h>

#include <troupe/base/text.hpp>
#include "scalar_types.hpp"

namespace troupe {

struct SafetensorsFile::State {
  ~State() {
    if (file >= 0) ::close(file);
  }
  std::string path;
  int file = -1;
  SafetensorsHeader header;
  mutable std::atomic<std::int64_t> bytes_read = 0;
};

namespace {

/// All of [begin, begin + bytes) of the file.
Result<void> read_bytes(int file, void* to, std::int64_t begin, std::int64_t bytes, const std::string& path) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ::ssize_t got = ::pread(file, at, static_cast<std::size_t>(bytes), begin);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(Errc::kIo, text(path, ": can't be read: ", std::strerror(errno)));
    if (got == 0) return fail(Errc::kBadData, text(path, ": ends at byte ", begin, "; did it shrink while it was open?"));
    at += got;
    begin += got;
    bytes -= got;
  }
  return {};
}

Result<std::string> read_header_bytes(int file, std::int64_t size, const std::string& path) {
  std::string out(static_cast<std::size_t>(std::min<std::int64_t>(size, 8)), '\0');
  if (auto ok = read_bytes(file, out.data(), 0, static_cast<std::int64_t>(out.size()), path); !ok) return fail(ok.error());
  if (out.size() < 8) return out;
  std::uint64_t length = 0;
  std::memcpy(&length, out.data(), sizeof length);
  if (length > static_cast<std::uint64_t>(kMaxSafetensorsHeader) || static_cast<std::int64_t>(length) > size - 8) return out;   // the parser says what is wrong
  out.resize(8 + length);
  if (auto ok = read_bytes(file, out.data() + 8, 8, static_cast<std::int64_t>(length), path); !ok) return fail(ok.error());
  return out;
}

/// A tensor seen as [before, dim, after] bytes.
struct Strides {
  std::int64_t before = 1;
  std::int64_t dim = 1;
  std::int64_t after = 1;   ///< Bytes of one step along dim.
};

}  // namespace

SafetensorsFile::SafetensorsFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
SafetensorsFile::~SafetensorsFile() = default;

Result<std::shared_ptr<const SafetensorsFile>> SafetensorsFile::open(const std::string& path) {
  static_assert(std::endian::native == std::endian::little, "the format is little-endian");
  auto state = std::make_unique<State>();
  state->path = path;
  state->file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (state->file < 0) return fail(Errc::kIo, text(path, ": can't be opened: ", std::strerror(errno)));
  struct ::stat about {};
  if (::fstat(state->file, &about) != 0 || !S_ISREG(about.st_mode)) return fail(Errc::kIo, text(path, ": is not a file"));
  const auto bytes = read_header_bytes(state->file, about.st_size, path);
  if (!bytes) return fail(bytes.error());
  auto header = parse_safetensors_header(*bytes, about.st_size, path);
  if (!header) return fail(header.error());
  state->header = std::move(*header);
  return std::shared_ptr<const SafetensorsFile>(new SafetensorsFile(std::move(state)));
}

const SafetensorsHeader& SafetensorsFile::header() const noexcept { return state_->header; }
const std::string& SafetensorsFile::path() const noexcept { return state_->path; }
bool SafetensorsFile::has(const std::string& name) const { return state_->header.tensors.contains(name); }
std::int64_t SafetensorsFile::bytes_read() const noexcept { return state_->bytes_read; }

Result<void> SafetensorsFile::expect(const std::string& name, std::span<const std::int64_t> shape) const {
  const auto found = state_->header.tensors.find(name);
  if (found == state_->header.tensors.end()) return fail(Errc::kMismatch, text(state_->path, ": there is no tensor '", name, "'"));
  if (std::ranges::equal(found->second.shape, shape)) return {};
  return fail(Errc::kMismatch, text(state_->path, ": tensor '", name, "' must be ", at::IntArrayRef(shape.data(), shape.size()), ", got ", at::IntArrayRef(found->second.shape)));
}

Result<at::Tensor> SafetensorsFile::read(const std::string& name, const TensorPart& part) const {
  const auto found = state_->header.tensors.find(name);
  if (found == state_->header.tensors.end()) return fail(Errc::kMismatch, text(state_->path, ": there is no tensor '", name, "'"));
  const StoredTensor& stored = found->second;
  const auto type = detail::scalar_type(stored.dtype);
  if (!type) return fail(Errc::kBadData, text(state_->path, ", tensor '", name, "': LibTorch has no dtype ", stored.dtype));
  std::vector<std::int64_t> sizes = stored.shape;
  const Share whole{0, part.dim < 0 || part.dim >= static_cast<int>(sizes.size()) ? 1 : sizes[static_cast<std::size_t>(part.dim)]};
  if (part.dim >= static_cast<int>(sizes.size())) return fail(Errc::kInvalidArgument, text(state_->path, ", tensor '", name, "': has no dim ", part.dim));
  const std::span<const Share> ranges = part.dim < 0 ? std::span(&whole, 1) : part.ranges;
  Strides strides;
  strides.after = static_cast<std::int64_t>(c10::elementSize(*type));
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (static_cast<int>(i) < part.dim) strides.before *= sizes[i];
    if (static_cast<int>(i) > part.dim) strides.after *= sizes[i];
  }
  strides.dim = whole.size;
  std::int64_t rows = 0;
  for (const Share& range : ranges) {
    if (range.begin < 0 || range.size < 0 || range.begin > strides.dim - range.size) {
      return fail(Errc::kInvalidArgument, text(state_->path, ", tensor '", name, "': rows ", range.begin, " .. ", range.begin + range.size, " of ", strides.dim));
    }
    rows += range.size;
  }
  if (part.dim >= 0) sizes[static_cast<std::size_t>(part.dim)] = rows;
  at::Tensor out = at::empty(sizes, at::TensorOptions(*type));
  auto* to = static_cast<char*>(out.mutable_data_ptr());
  for (std::int64_t before = 0; before < strides.before; ++before) {
    for (const Share& range : ranges) {
      const std::int64_t bytes = range.size * strides.after;
      if (auto ok = read_bytes(state_->file, to, stored.begin + (before * strides.dim + range.begin) * strides.after, bytes, state_->path); !ok) return fail(ok.error());
      to += bytes;
      state_->bytes_read += bytes;
    }
  }
  return out;
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
