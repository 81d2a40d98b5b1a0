#include "file_bytes.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/base/text.hpp>

namespace qwen_vl {
namespace {

tl::unexpected<troupe::Error> refused(const std::string& path, const char* what) {
  return troupe::fail(troupe::Errc::kIo, troupe::text(path, " can't be ", what, ": ", std::generic_category().message(errno)));
}

}  // namespace

troupe::Result<FileBytes> FileBytes::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return refused(path, "opened");
  FileBytes out(path, 0, descriptor);
  struct stat status = {};
  if (::fstat(descriptor, &status) != 0) return refused(path, "looked at");
  if (!S_ISREG(status.st_mode)) return troupe::fail(troupe::Errc::kIo, troupe::text(path, " is no file"));
  out.size_ = status.st_size;
  return out;
}

FileBytes& FileBytes::operator=(FileBytes&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(size_, other.size_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

FileBytes::~FileBytes() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

troupe::Result<std::string> FileBytes::read(std::int64_t offset, std::int64_t count) const {
  std::string out(static_cast<std::size_t>(std::clamp<std::int64_t>(size_ - offset, 0, count)), '\0');
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t got = ::pread(descriptor_, out.data() + done, out.size() - done, offset + static_cast<std::int64_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refused(path_, "read");
    if (got == 0) break;   // cut short since it was opened
    done += static_cast<std::size_t>(got);
  }
  out.resize(done);
  return out;
}

}  // namespace qwen_vl
