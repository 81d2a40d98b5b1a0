#include "jpeg.hpp"

#include <memory>

#include <turbojpeg.h>

#include <troupe/base/text.hpp>

#include "exif.hpp"

namespace qwen_vl {
namespace {

using troupe::Errc;
using troupe::text;

using Decoder = std::unique_ptr<void, decltype(&tjDestroy)>;

/// Pillow's conversion: (255 - K) (255 - c) / 255, rounded. An Adobe file holds both inverted.
std::vector<std::uint8_t> rgb_of_cmyk(const std::vector<std::uint8_t>& cmyk, bool inverted) {
  std::vector<std::uint8_t> out(cmyk.size() / 4 * 3);
  const auto light = [&](std::size_t at) { return inverted ? unsigned{cmyk[at]} : 255U - cmyk[at]; };
  for (std::size_t pixel = 0; pixel < cmyk.size() / 4; ++pixel) {
    const unsigned key = light(pixel * 4 + 3);
    for (std::size_t channel = 0; channel < 3; ++channel) {
      const unsigned product = (255U - light(pixel * 4 + channel)) * key + 128;
      const unsigned taken = ((product >> 8) + product) >> 8;
      out[pixel * 3 + channel] = static_cast<std::uint8_t>(key > taken ? key - taken : 0);
    }
  }
  return out;
}

/// Whether a warning means that pixels were made up. Superfluous bytes are harmless, and common.
bool is_damage(std::string_view warning) {
  if (warning.find("extraneous bytes") != std::string_view::npos) return false;
  return warning.find("Corrupt JPEG data") != std::string_view::npos || warning.find("Premature end") != std::string_view::npos || warning.find("progression") != std::string_view::npos;
}

}  // namespace

bool is_jpeg(std::string_view bytes) { return bytes.starts_with("\xFF\xD8\xFF"); }

troupe::Result<Picture> decode_jpeg(std::string_view bytes, const std::string& name) {
  const auto wrong = [&](auto... parts) { return troupe::fail(Errc::kBadData, text("picture ", name, ": ", parts...)); };
  const Decoder decoder(tjInitDecompress(), &tjDestroy);
  if (!decoder) return troupe::fail(Errc::kOutOfMemory, text("picture ", name, ": no memory for a JPEG decoder"));
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  int width = 0, height = 0, subsampling = 0, space = 0;
  if (tjDecompressHeader3(decoder.get(), data, bytes.size(), &width, &height, &subsampling, &space) != 0) {
    return wrong("is no readable JPEG: ", tjGetErrorStr2(decoder.get()));
  }
  if (width == 0 && height == 0) return wrong("is a JPEG that ends inside its header (", bytes.size(), " bytes)");
  if (auto ok = check_size(width, height, name); !ok) return troupe::fail(ok.error());
  const bool cmyk = space == TJCS_CMYK || space == TJCS_YCCK;
  const int format = cmyk ? TJPF_CMYK : TJPF_RGB;
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * (cmyk ? 4 : 3));
  if (tjDecompress2(decoder.get(), data, bytes.size(), pixels.data(), width, 0, height, format, 0) != 0) {
    const std::string message = tjGetErrorStr2(decoder.get());
    if (tjGetErrorCode(decoder.get()) != TJERR_WARNING || is_damage(message)) return wrong("is a broken JPEG: ", message, " (", bytes.size(), " bytes)");
  }
  const JpegNotes notes = jpeg_notes(bytes);
  return upright({width, height, cmyk ? rgb_of_cmyk(pixels, notes.adobe) : std::move(pixels)}, notes.orientation);
}

}  // namespace qwen_vl
