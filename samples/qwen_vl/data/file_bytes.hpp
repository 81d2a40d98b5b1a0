#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <troupe/base/result.hpp>

namespace qwen_vl {

/// A file open for reading at any place. Thread: any, also several at once.
class FileBytes {
 public:
  /// Fails with: kIo naming the path and what the system says.
  [[nodiscard]] static troupe::Result<FileBytes> open(const std::string& path);
  FileBytes(FileBytes&& other) noexcept : path_(std::move(other.path_)), size_(other.size_), descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileBytes& operator=(FileBytes&& other) noexcept;
  ~FileBytes();

  [[nodiscard]] const std::string& path() const { return path_; }
  /// In bytes, when it was opened.
  [[nodiscard]] std::int64_t size() const { return size_; }
  /// `count` bytes from `offset`, or fewer at the end of the file.
  /// Fails with: kIo.
  [[nodiscard]] troupe::Result<std::string> read(std::int64_t offset, std::int64_t count) const;

 private:
  FileBytes(std::string path, std::int64_t size, int descriptor) : path_(std::move(path)), size_(size), descriptor_(descriptor) {}
  std::string path_;
  std::int64_t size_ = 0;
  int descriptor_ = -1;
};

}  // namespace qwen_vl
