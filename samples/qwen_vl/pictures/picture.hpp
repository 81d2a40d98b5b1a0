#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/base/result.hpp>

namespace qwen_vl {

/// 8-bit RGB, row after row.
struct Picture {
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::vector<std::uint8_t> rgb;
};

/// More pixels than any picture that is decoded: what a small broken file can claim.
inline constexpr std::int64_t kMaxPixels = std::int64_t{1} << 28;

/// Whether a header's size can be allocated. Fails with: kBadData naming the picture.
[[nodiscard]] troupe::Result<void> check_size(std::int64_t width, std::int64_t height, const std::string& name);

/// Decodes PNG, JPEG, BMP, GIF (first frame), TGA or PNM. What is transparent lies on white and grey becomes RGB, as transformers'
/// convert_to_rgb does; Exif's orientation is applied, as its load_image does.
/// `name` is for messages. Fails with: kBadData naming the file and what is wrong with it.
[[nodiscard]] troupe::Result<Picture> decode_picture(std::string_view bytes, const std::string& name);

/// The same from a file. Fails with: kIo, kBadData.
[[nodiscard]] troupe::Result<Picture> read_picture(const std::string& path);

}  // namespace qwen_vl
