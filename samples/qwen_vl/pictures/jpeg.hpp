#pragma once

#include <string>
#include <string_view>

#include "picture.hpp"

namespace qwen_vl {

[[nodiscard]] bool is_jpeg(std::string_view bytes);

/// Decodes with libjpeg-turbo, as Pillow does: stb_image differs by up to 3 of 255 where colour is subsampled.
/// CMYK becomes RGB without a colour profile, as Pillow's convert does.
/// Fails with: kBadData naming the picture, also for data that ends early or is damaged inside.
[[nodiscard]] troupe::Result<Picture> decode_jpeg(std::string_view bytes, const std::string& name);

}  // namespace qwen_vl
