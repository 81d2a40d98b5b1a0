#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <troupe/base/result.hpp>

namespace troupe::detail {

/// errno as an Error: "PATH: can't be WHAT: reason".
[[nodiscard]] Error io_error(const std::string& what, const std::string& path);

/// An open file, closed with the object.
class File {
 public:
  File() = default;
  /// For reading. Fails with: kIo, also for what is not a regular file.
  [[nodiscard]] static Result<File> open(const std::string& path);
  /// For writing, emptied.
  [[nodiscard]] static Result<File> create(const std::string& path);
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File() { close(); }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::int64_t size() const noexcept { return size_; }   ///< When it was opened.

  /// All of [begin, begin + bytes). Fails with: kIo, kBadData when the file has become shorter. Thread: any, at once.
  [[nodiscard]] Result<void> read(void* to, std::int64_t begin, std::int64_t bytes) const;
  [[nodiscard]] Result<void> write(const void* from, std::int64_t begin, std::int64_t bytes);
  [[nodiscard]] Result<void> flush();
  void close() noexcept;

 private:
  std::string path_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
};

/// A file in the making, "<path>.part"; removed with the object unless it was placed.
class PartFile {
 public:
  [[nodiscard]] static Result<PartFile> create(const std::string& path);
  PartFile(PartFile&& other) noexcept : path_(std::exchange(other.path_, {})), file_(std::move(other.file_)) {}
  ~PartFile();

  [[nodiscard]] Result<void> write(const void* from, std::int64_t begin, std::int64_t bytes) { return file_.write(from, begin, bytes); }
  /// Flushes to disk and closes.
  [[nodiscard]] Result<void> seal();
  /// Renames a sealed file into place and flushes the folder: after a crash there is the old file or the new one.
  [[nodiscard]] Result<void> place();

 private:
  PartFile() = default;
  std::string path_;   ///< Empty once placed or moved from.
  File file_;
};

}  // namespace troupe::detail
