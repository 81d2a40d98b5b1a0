#include "files.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <unistd.h>

#include <troupe/base/text.hpp>
#include <troupe/train/tensor_folder.hpp>

namespace troupe {
namespace detail {
namespace {

/// A rename is on disk only once its folder is.
Result<void> flush_folder(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return fail(io_error("opened", folder));
  const bool ok = ::fsync(file) == 0 || errno == EINVAL;   // some file systems flush no folders
  Error error = ok ? Error{} : io_error("flushed", folder);
  ::close(file);
  if (!ok) return fail(std::move(error));
  return {};
}

}  // namespace

Error io_error(const std::string& what, const std::string& path) { return {.code = Errc::kIo, .message = text(path, ": can't be ", what, ": ", std::strerror(errno))}; }

Result<void> write_bytes(int file, const void* from, std::int64_t bytes, const std::string& path) {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ::ssize_t put = ::write(file, at, static_cast<std::size_t>(bytes));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return fail(io_error("written", path));
    at += put;
    bytes -= put;
  }
  return {};
}

Result<void> put_in_place(int file, const std::string& part, const std::string& path) {
  if (::fsync(file) != 0) return fail(io_error("flushed", part));
  if (::rename(part.c_str(), path.c_str()) != 0) return fail(io_error("renamed", part));
  return flush_folder(path);
}

}  // namespace detail

Result<void> write_file(const std::string& path, std::string_view content) {
  const std::string part = path + ".part";
  const int file = ::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return fail(detail::io_error("made", part));
  auto ok = detail::write_bytes(file, content.data(), static_cast<std::int64_t>(content.size()), part);
  if (ok) ok = detail::put_in_place(file, part, path);
  ::close(file);
  if (!ok) ::unlink(part.c_str());
  return ok;
}

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  if (!file) return fail(detail::io_error("opened", path));
  content << file.rdbuf();
  if (!file || (content.fail() && file.peek() != std::ifstream::traits_type::eof())) return fail(detail::io_error("read", path));
  return content.str();
}

}  // namespace troupe
