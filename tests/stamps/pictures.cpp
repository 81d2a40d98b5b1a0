#include "pictures.hpp"

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include <stdlib.h>

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#include <stb/stb_image_write.h>
#pragma GCC diagnostic pop

namespace stamps::test {

Folder::Folder() {
  std::string name = (std::filesystem::temp_directory_path() / "stamps-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("can't make " + name);
  path_ = name;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::vector<std::string> Folder::names() const {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) out.push_back(entry.path().filename().string());
  std::ranges::sort(out);
  return out;
}

std::vector<std::uint8_t> png(int width, int height, const std::function<Color(int x, int y)>& color) {
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const Color c = color(x, y);
      pixels.insert(pixels.end(), {c.red, c.green, c.blue, c.alpha});
    }
  }
  std::vector<std::uint8_t> out;
  const auto append = [](void* to, void* data, int size) {
    const auto* const begin = static_cast<const std::uint8_t*>(data);
    static_cast<std::vector<std::uint8_t>*>(to)->insert(static_cast<std::vector<std::uint8_t>*>(to)->end(), begin, begin + size);
  };
  stbi_write_png_to_func(append, &out, width, height, 4, pixels.data(), width * 4);
  return out;
}

std::vector<std::uint8_t> plain_png(Color color) {
  return png(20, 10, [color](int, int) { return color; });
}

void write(const std::string& path, const std::vector<std::uint8_t>& bytes) {
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

void write(const std::string& path, const std::string& words) { std::ofstream(path) << words; }

void write_stamps(const Folder& folder, int count) {
  const std::vector<std::string> names = {"red", "green", "blue"};
  for (int i = 0; i < count; ++i) {
    const auto tone = static_cast<std::uint8_t>(40 + 50 * (i / 3 % 4));
    Color color{tone, tone, tone};
    (i % 3 == 0 ? color.red : i % 3 == 1 ? color.green : color.blue) = 255;
    const std::string name = (i < 10 ? "0" : "") + std::to_string(i);
    write(folder / (name + ".png"), plain_png(color));
    write(folder / (name + ".txt"), "A " + names[static_cast<std::size_t>(i % 3)] + (i % 3 == 1 ? " and large square!\n" : " square.\n"));
  }
}

}  // namespace stamps::test
