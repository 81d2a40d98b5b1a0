#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <unistd.h>

namespace troupe {

/// A folder for one test, removed with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "troupe_train_XXXXXX").string();
    path_ = ::mkdtemp(pattern.data()) == nullptr ? "" : pattern;
    EXPECT_FALSE(path_.empty());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

  /// How many entries it has.
  [[nodiscard]] std::ptrdiff_t count() const { return std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator()); }

 private:
  std::string path_;
};

inline void put(const std::string& path, std::string_view content) { std::ofstream(path, std::ios::binary) << content; }

inline std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A safetensors file with this JSON and as many zero bytes of data.
inline std::string stored(std::string_view json, std::size_t data_bytes = 0) {
  std::string out;
  for (int i = 0; i < 8; ++i) out += static_cast<char>(json.size() >> (8 * i) & 0xff);
  return out.append(json).append(data_bytes, '\0');
}

}  // namespace troupe
