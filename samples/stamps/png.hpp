#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace stamps {

/// What is wrong with the bytes of a PNG file, or "" when every chunk is whole and its checksum right.
/// stb_image looks at no checksum, so a broken download would train as noise.
/// Source: PNG specification, third edition, section 5.
[[nodiscard]] std::string png_fault(std::span<const std::uint8_t> bytes);

}  // namespace stamps
