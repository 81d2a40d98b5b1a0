#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace stamps::test {

inline constexpr const char* kInstalled = "/usr/share/tuxpaint/stamps";

/// A folder of its own, gone afterwards.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  [[nodiscard]] std::string path() const { return path_.string(); }
  [[nodiscard]] std::vector<std::string> names() const;  ///< What lies in it, sorted.

 private:
  std::filesystem::path path_;
};

struct Color {
  std::uint8_t red = 0, green = 0, blue = 0, alpha = 255;
};

/// The bytes of a PNG.
[[nodiscard]] std::vector<std::uint8_t> png(int width, int height, const std::function<Color(int x, int y)>& color);
[[nodiscard]] std::vector<std::uint8_t> plain_png(Color color);

void write(const std::string& path, const std::vector<std::uint8_t>& bytes);
void write(const std::string& path, const std::string& words);

/// `count` pictures of one colour, named 00.png, 01.png, ..., with captions that tell the colour: red, green, blue
/// in turn.
void write_stamps(const Folder& folder, int count);

}  // namespace stamps::test
