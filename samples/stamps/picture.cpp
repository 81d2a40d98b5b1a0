#include "picture.hpp"

#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#define STBI_WRITE_NO_STDIO
#define STB_IMAGE_RESIZE_IMPLEMENTATION
#define STB_IMAGE_RESIZE_STATIC
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wimplicit-fallthrough"
#pragma GCC diagnostic ignored "-Wsign-compare"
#include <stb/stb_image.h>
#include <stb/stb_image_resize.h>
#include <stb/stb_image_write.h>
#pragma GCC diagnostic pop

#include <troupe/base/text.hpp>

#include "png.hpp"

namespace stamps {

using troupe::Errc;
using troupe::text;

namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 20;  // no stamp has a hundredth of it
constexpr int kMostPixels = 1 << 26;

using Pixels = std::unique_ptr<stbi_uc, void (*)(void*)>;

/// On white before resizing, so that transparent pixels do not bleed their colour in.
std::vector<stbi_uc> on_white(const stbi_uc* rgba, std::size_t pixels) {
  std::vector<stbi_uc> rgb(pixels * 3);
  for (std::size_t i = 0; i < pixels; ++i) {
    const int alpha = rgba[4 * i + 3];
    for (std::size_t c = 0; c < 3; ++c) rgb[3 * i + c] = static_cast<stbi_uc>((rgba[4 * i + c] * alpha + 255 * (255 - alpha)) / 255);
  }
  return rgb;
}

troupe::Result<std::vector<stbi_uc>> read_bytes(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file) return troupe::fail(Errc::kIo, text("picture ", path, " can't be opened (", error ? error.message() : "no permission", "): is it there, and readable?"));
  if (size > kMostBytes) return troupe::fail(Errc::kBadData, text("picture ", path, ": expected at most ", kMostBytes, " bytes, got ", size));
  std::vector<stbi_uc> bytes(size);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (file.gcount() != static_cast<std::streamsize>(size)) return troupe::fail(Errc::kIo, text("picture ", path, ": expected ", size, " bytes, could read ", file.gcount()));
  return bytes;
}

}  // namespace

troupe::Result<Picture> load_picture(const std::string& path) {
  const auto bytes = read_bytes(path);
  if (!bytes) return troupe::fail(bytes.error());
  if (const std::string fault = png_fault(*bytes); !fault.empty()) return troupe::fail(Errc::kBadData, text("picture ", path, ": ", fault));
  int width = 0;
  int height = 0;
  int channels = 0;
  const auto length = static_cast<int>(bytes->size());
  if (stbi_info_from_memory(bytes->data(), length, &width, &height, &channels) != 0 && width > kMostPixels / height) {
    return troupe::fail(Errc::kBadData, text("picture ", path, ": expected at most ", kMostPixels, " pixels, got ", width, " x ", height));
  }
  const Pixels rgba(stbi_load_from_memory(bytes->data(), length, &width, &height, &channels, 4), &stbi_image_free);
  if (!rgba) return troupe::fail(Errc::kBadData, text("picture ", path, " can't be decoded: ", stbi_failure_reason(), " (", length, " bytes)"));
  const auto rgb = on_white(rgba.get(), static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
  Picture out;
  if (stbir_resize_uint8_generic(rgb.data(), width, height, 0, out.data(), kSide, kSide, 0, 3, STBIR_ALPHA_CHANNEL_NONE, 0, STBIR_EDGE_CLAMP, STBIR_FILTER_BOX,
                                 STBIR_COLORSPACE_LINEAR, nullptr) == 0) {
    return troupe::fail(Errc::kBadData, text("picture ", path, " (", width, " x ", height, ") can't be resized"));
  }
  return out;
}

std::string png_of(const Picture& picture) {
  std::string out;
  const auto append = [](void* to, void* bytes, int size) { static_cast<std::string*>(to)->append(static_cast<const char*>(bytes), static_cast<std::size_t>(size)); };
  stbi_write_png_to_func(append, &out, kSide, kSide, 3, picture.data(), kSide * 3);
  return out;
}

void append_patches(const Picture& picture, Shift shift, std::vector<float>& rows) {
  const auto ink = [&](int y, int x, int c) {
    if (y < 0 || y >= kSide || x < 0 || x >= kSide) return 0.0F;
    return static_cast<float>(255 - picture[static_cast<std::size_t>((y * kSide + x) * 3 + c)]) / 64.0F;
  };
  for (int unit = 0; unit < kPatches / kMerge; ++unit) {
    for (int part = 0; part < kMerge; ++part) {
      const int top = (unit / (kGrid / 2) * 2 + part / 2) * kPatch - shift.down;
      const int left = (unit % (kGrid / 2) * 2 + part % 2) * kPatch - shift.right;
      for (int i = 0; i < kPatchSize; ++i) rows.push_back(ink(top + i / (kPatch * 3), left + i / 3 % kPatch, i % 3));
    }
  }
}

}  // namespace stamps
