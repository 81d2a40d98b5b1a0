#pragma once

#include <filesystem>
#include <string>

namespace qwen_vl::test {

/// A folder of its own, gone afterwards.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  [[nodiscard]] std::string path() const { return path_.string(); }
  /// Writes a file below it, with the folders it needs; returns its path.
  std::string write(const std::string& name, const std::string& bytes) const;

 private:
  std::filesystem::path path_;
};

[[nodiscard]] std::string content_of(const std::string& path);

}  // namespace qwen_vl::test
