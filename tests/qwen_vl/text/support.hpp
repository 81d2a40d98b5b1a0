#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tokenizer.hpp"
#include "vocabulary.hpp"

namespace qwen_vl::test {

/// A folder of this test alone, removed at its end.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "qwen_vl_text_XXXXXX").string();
    if (!mkdtemp(pattern.data())) throw std::runtime_error("no temporary folder " + pattern);
    path_ = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

inline void write(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  out << bytes;
  out.close();
  ASSERT_TRUE(out) << path;
}

inline std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// A small tokenizer: the bytes, 44 merges and Qwen's added tokens.
inline Tokenizer small() {
  const std::vector<std::string> lines = {"the cat and the hat and another thing", "the rat sat on the mat, over there", "that is the hat of the cat: an other one",
                                          "a hat, a cat, a mat; another rat", "the thing is sitting on that mat of this cat", "over and over, one after the other"};
  return troupe::or_throw(train_vocabulary(lines, {.size = 322, .least_count = 1}));
}

/// Qwen's own tokenizer, loaded once. Empty without the ranks, which tools/setup fetches.
inline const std::optional<Tokenizer>& qwen() {
  static const std::optional<Tokenizer> tokenizer = []() -> std::optional<Tokenizer> {
    if (!std::filesystem::exists(TEXT_RANKS)) return std::nullopt;
    return troupe::or_throw(Tokenizer::load(TEXT_RANKS));
  }();
  return tokenizer;
}

inline constexpr const char* kNoRanks = "no " TEXT_RANKS ": run tools/setup, which fetches it from PyPI";

/// Well-formed UTF-8: characters of all lengths, many of them ASCII, some beside combining marks.
inline std::string random_text(std::mt19937& random, std::size_t count) {
  constexpr std::pair<char32_t, char32_t> kRanges[] = {
      {0, 0x7F}, {0x20, 0x7E}, {0x20, 0x7E}, {0x80, 0x24F}, {0x300, 0x36F}, {0x370, 0x1FFF}, {0x2000, 0xD7FF}, {0xE000, 0xFFFF}, {0x10000, 0x10FFFF}};
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    const auto [first, last] = kRanges[random() % std::size(kRanges)];
    const char32_t c = first + static_cast<char32_t>(random()) % (last - first + 1);
    const auto tail = [&](int shift) { out += static_cast<char>(0x80 | (c >> shift & 0x3F)); };
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else if (c < 0x800) {
      out += static_cast<char>(0xC0 | c >> 6), tail(0);
    } else if (c < 0x10000) {
      out += static_cast<char>(0xE0 | c >> 12), tail(6), tail(0);
    } else {
      out += static_cast<char>(0xF0 | c >> 18), tail(12), tail(6), tail(0);
    }
  }
  return out;
}

}  // namespace qwen_vl::test
