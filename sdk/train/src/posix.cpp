#include "posix.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/base/text.hpp>
#include <troupe/train/files.hpp>

namespace troupe {
namespace detail {
namespace {

/// A rename is on disk only once its folder is.
Result<void> flush_folder(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return fail(io_error("opened", folder));
  const bool ok = ::fsync(descriptor) == 0 || errno == EINVAL;   // some file systems flush no folders
  Error error = ok ? Error{} : io_error("flushed", folder);
  ::close(descriptor);
  if (!ok) return fail(std::move(error));
  return {};
}

}  // namespace

Error io_error(const std::string& what, const std::string& path) { return {.code = Errc::kIo, .message = text(path, ": can't be ", what, ": ", std::strerror(errno))}; }

File::File(File&& other) noexcept : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

File& File::operator=(File&& other) noexcept {
  close();
  path_ = std::move(other.path_);
  descriptor_ = std::exchange(other.descriptor_, -1);
  size_ = other.size_;
  return *this;
}

Result<File> File::open(const std::string& path) {
  File out;
  out.path_ = path;
  out.descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);   // a pipe must not wait for its writer
  if (out.descriptor_ < 0) return fail(io_error("opened", path));
  struct ::stat about {};
  if (::fstat(out.descriptor_, &about) != 0) return fail(io_error("looked at", path));
  if (!S_ISREG(about.st_mode)) return fail(Errc::kIo, text(path, ": is not a regular file"));
  out.size_ = about.st_size;
  return out;
}

Result<File> File::create(const std::string& path) {
  File out;
  out.path_ = path;
  out.descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (out.descriptor_ < 0) return fail(io_error("made", path));
  return out;
}

Result<void> File::read(void* to, std::int64_t begin, std::int64_t bytes) const {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ::ssize_t got = ::pread(descriptor_, at, static_cast<std::size_t>(bytes), begin);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(io_error("read", path_));
    if (got == 0) return fail(Errc::kBadData, text(path_, ": ends at byte ", begin, "; did it shrink while it was open?"));
    at += got;
    begin += got;
    bytes -= got;
  }
  return {};
}

Result<void> File::write(const void* from, std::int64_t begin, std::int64_t bytes) {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ::ssize_t put = ::pwrite(descriptor_, at, static_cast<std::size_t>(bytes), begin);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return fail(io_error("written", path_));
    at += put;
    begin += put;
    bytes -= put;
  }
  return {};
}

Result<void> File::flush() {
  if (::fsync(descriptor_) != 0) return fail(io_error("flushed", path_));
  return {};
}

void File::close() noexcept {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

Result<PartFile> PartFile::create(const std::string& path) {
  auto file = File::create(path + ".part");
  if (!file) return fail(file.error());
  PartFile out;
  out.path_ = path;
  out.file_ = std::move(*file);
  return out;
}

PartFile::~PartFile() {
  if (!path_.empty()) ::unlink(file_.path().c_str());
}

Result<void> PartFile::seal() {
  auto ok = file_.flush();
  if (ok) file_.close();
  return ok;
}

Result<void> PartFile::place() {
  if (::rename(file_.path().c_str(), path_.c_str()) != 0) return fail(io_error("renamed", file_.path()));
  const std::string path = std::exchange(path_, {});
  return flush_folder(path);
}

}  // namespace detail

Result<void> write_file(const std::string& path, std::string_view content) {
  auto file = detail::PartFile::create(path);
  if (!file) return fail(file.error());
  if (auto ok = file->write(content.data(), 0, static_cast<std::int64_t>(content.size())); !ok) return ok;
  if (auto ok = file->seal(); !ok) return ok;
  return file->place();
}

Result<std::string> read_file(const std::string& path) {
  const auto file = detail::File::open(path);
  if (!file) return fail(file.error());
  std::string out(static_cast<std::size_t>(file->size()), '\0');
  if (auto ok = file->read(out.data(), 0, file->size()); !ok) return fail(ok.error());
  return out;
}

}  // namespace troupe
