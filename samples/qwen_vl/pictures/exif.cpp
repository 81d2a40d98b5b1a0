#include "exif.hpp"

#include <cstddef>

namespace qwen_vl {
namespace {

/// Numbers of a TIFF block, 0 past its end.
class Tiff {
 public:
  Tiff(std::string_view bytes, bool big_endian) : bytes_(bytes), big_endian_(big_endian) {}
  [[nodiscard]] std::size_t number(std::size_t at, std::size_t length) const {
    if (at > bytes_.size() || bytes_.size() - at < length) return 0;
    std::size_t out = 0;
    for (std::size_t i = 0; i < length; ++i) out = out << 8 | static_cast<unsigned char>(bytes_[at + (big_endian_ ? i : length - 1 - i)]);
    return out;
  }

 private:
  std::string_view bytes_;
  bool big_endian_;
};

constexpr std::size_t kEntryBytes = 12;
constexpr std::size_t kOrientationTag = 0x0112;
constexpr std::size_t kShort = 3;

}  // namespace

int exif_orientation(std::string_view bytes) {
  const bool big_endian = bytes.starts_with("MM");
  if (!big_endian && !bytes.starts_with("II")) return 1;
  const Tiff tiff(bytes, big_endian);
  if (tiff.number(2, 2) != 42) return 1;
  const std::size_t directory = tiff.number(4, 4);
  const std::size_t entries = tiff.number(directory, 2);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + i * kEntryBytes;
    if (tiff.number(entry, 2) != kOrientationTag || tiff.number(entry + 2, 2) != kShort) continue;
    const std::size_t value = tiff.number(entry + 8, 2);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

JpegNotes jpeg_notes(std::string_view bytes) {
  JpegNotes out;
  const auto byte = [&](std::size_t at) { return static_cast<std::size_t>(static_cast<unsigned char>(bytes[at])); };
  for (std::size_t at = 2; at + 4 <= bytes.size() && byte(at) == 0xFF;) {
    const std::size_t marker = byte(at + 1);
    if (marker == 0xFF) {   // padding
      ++at;
      continue;
    }
    if (marker == 0xDA || marker == 0xD9) break;   // the pixels begin
    const std::size_t length = byte(at + 2) << 8 | byte(at + 3);
    if (length < 2 || bytes.size() - at - 2 < length) break;
    const std::string_view segment = bytes.substr(at + 4, length - 2);
    constexpr std::string_view kExif("Exif\0\0", 6);
    if (marker == 0xE1 && segment.starts_with(kExif)) out.orientation = exif_orientation(segment.substr(kExif.size()));
    if (marker == 0xEE && segment.starts_with("Adobe")) out.adobe = true;
    at += 2 + length;
  }
  return out;
}

Picture upright(Picture picture, int orientation) {
  if (orientation <= 1 || orientation > 8) return picture;
  const bool turned = orientation >= 5;
  const bool mirror_columns = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool mirror_rows = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  Picture out{turned ? picture.height : picture.width, turned ? picture.width : picture.height, std::vector<std::uint8_t>(picture.rgb.size())};
  std::uint8_t* to = out.rgb.data();
  for (std::int64_t y = 0; y < out.height; ++y) {
    for (std::int64_t x = 0; x < out.width; ++x, to += 3) {
      const std::int64_t column = turned ? y : x;
      const std::int64_t row = turned ? x : y;
      const std::uint8_t* from = picture.rgb.data() + 3 * ((mirror_rows ? picture.height - 1 - row : row) * picture.width + (mirror_columns ? picture.width - 1 - column : column));
      for (int channel = 0; channel < 3; ++channel) to[channel] = from[channel];
    }
  }
  return out;
}

}  // namespace qwen_vl
