#include "picture.hpp"

#include <fstream>
#include <limits>
#include <memory>
#include <sstream>

#include <troupe/base/text.hpp>

#include "exif.hpp"
#include "jpeg.hpp"
#include "png.hpp"

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_NO_STDIO
#define STBI_NO_HDR
#define STBI_NO_LINEAR
#define STBI_NO_JPEG
#define STBI_NO_PSD
#define STBI_NO_PIC
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wsign-compare"
#include <stb/stb_image.h>
#pragma GCC diagnostic pop

namespace qwen_vl {
namespace {

/// One channel over white, in the rounding of PIL's alpha_composite.
std::uint8_t over_white(unsigned value, unsigned alpha) {
  const unsigned scaled = (value * alpha + 255 * (255 - alpha)) * 128 + (0x80 << 7);
  return static_cast<std::uint8_t>((((scaled >> 8) + scaled) >> 8) >> 7);
}

std::vector<std::uint8_t> rgb_of(const stbi_uc* rgba, std::size_t pixels) {
  std::vector<std::uint8_t> out(pixels * 3);
  std::uint8_t* to = out.data();
  for (const stbi_uc* const end = rgba + pixels * 4; rgba != end; rgba += 4, to += 3) {
    const unsigned alpha = rgba[3];
    for (int channel = 0; channel < 3; ++channel) to[channel] = alpha == 255 ? rgba[channel] : over_white(rgba[channel], alpha);
  }
  return out;
}

}  // namespace

using troupe::Errc;
using troupe::text;

troupe::Result<void> check_size(std::int64_t width, std::int64_t height, const std::string& name) {
  if (width >= 1 && height >= 1 && width <= kMaxPixels / height) return {};
  return troupe::fail(Errc::kBadData, text("picture ", name, ": claims ", width, " x ", height, " pixels; at most ", kMaxPixels, " are read"));
}

troupe::Result<Picture> decode_picture(std::string_view bytes, const std::string& name) {
  const auto wrong = [&](auto... parts) { return troupe::fail(Errc::kBadData, text("picture ", name, ": ", parts...)); };
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) return wrong("is larger than 2 GiB");
  if (is_jpeg(bytes)) return decode_jpeg(bytes, name);
  const PngNotes notes = is_png(bytes) ? png_notes(bytes) : PngNotes{};
  if (!notes.fault.empty()) return wrong(notes.fault);
  const auto* data = reinterpret_cast<const stbi_uc*>(bytes.data());
  const int size = static_cast<int>(bytes.size());
  int width = 0, height = 0, channels = 0;
  if (stbi_info_from_memory(data, size, &width, &height, &channels) == 0) return wrong("is no PNG, JPEG, BMP, GIF, TGA or PNM (", stbi_failure_reason(), ")");
  if (auto ok = check_size(width, height, name); !ok) return troupe::fail(ok.error());
  // always with alpha: a header doesn't tell of a PNG's transparent colour
  const std::unique_ptr<stbi_uc, decltype(&stbi_image_free)> pixels(stbi_load_from_memory(data, size, &width, &height, &channels, 4), stbi_image_free);
  if (!pixels) return wrong("is broken: ", stbi_failure_reason());
  return upright({width, height, rgb_of(pixels.get(), static_cast<std::size_t>(width) * static_cast<std::size_t>(height))}, notes.orientation);
}

troupe::Result<Picture> read_picture(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  if (!file || !(content << file.rdbuf())) return troupe::fail(Errc::kIo, text("picture ", path, ": can't be read, or is empty"));
  return decode_picture(std::move(content).str(), path);
}

}  // namespace qwen_vl
