#pragma once

#include <string>
#include <string_view>

namespace qwen_vl {

[[nodiscard]] bool is_png(std::string_view bytes);

/// What a PNG says around its pixels.
struct PngNotes {
  std::string fault = {};   ///< What is wrong with its chunks; stb_image looks at no checksum, so a broken download would train as noise.
  int orientation = 1;      ///< Of its Exif chunk.
};

/// Walks the chunks of a file that is_png(). Source: PNG specification, third edition, sections 5 and 11.
[[nodiscard]] PngNotes png_notes(std::string_view bytes);

}  // namespace qwen_vl
