#pragma once

#include <string_view>

#include "picture.hpp"

namespace qwen_vl {

/// What a JPEG says beside its pixels.
struct JpegNotes {
  int orientation = 1;   ///< Exif's: 1 is upright.
  bool adobe = false;    ///< CMYK is stored inverted.
};
[[nodiscard]] JpegNotes jpeg_notes(std::string_view bytes);

/// Orientation (1 to 8) in an Exif block, from its "II" or "MM"; 1 when there is none. Source: Exif 2.3, 4.6.4; TIFF 6.0, section 2.
[[nodiscard]] int exif_orientation(std::string_view tiff);

/// Turned and mirrored so that it stands upright, as transformers does when it loads a file.
[[nodiscard]] Picture upright(Picture picture, int orientation);

}  // namespace qwen_vl
