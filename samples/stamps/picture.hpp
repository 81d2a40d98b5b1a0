#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <troupe/base/result.hpp>

namespace stamps {

inline constexpr int kSide = 64;                           ///< Pixels of a picture after resizing.
inline constexpr int kPatch = 8;                           ///< Pixels of a patch.
inline constexpr int kGrid = kSide / kPatch;               ///< Patches along a side.
inline constexpr int kPatches = kGrid * kGrid;             ///< Per picture.
inline constexpr int kPatchSize = kPatch * kPatch * 3;     ///< Numbers in a patch.
inline constexpr int kMerge = 4;                           ///< Patches that become one token (2 x 2).

/// RGB, row after row.
using Picture = std::array<std::uint8_t, kSide * kSide * 3>;

/// Decodes a PNG, puts it on white, and resizes it by area to kSide x kSide.
/// Fails with: kIo (missing, unreadable), kBadData (empty, truncated, broken, not a PNG), naming the file,
/// what was expected and what came.
[[nodiscard]] troupe::Result<Picture> load_picture(const std::string& path);

/// The picture as a PNG file.
[[nodiscard]] std::string png_of(const Picture& picture);

/// Pixels by which a picture is moved; white comes in.
struct Shift {
  int down = 0;
  int right = 0;
};

/// A picture as rows of patches: ink, 0 for the white around a stamp to 4 for black. Each group of four rows is
/// one 2 x 2 merge unit. Appends kPatches * kPatchSize numbers.
void append_patches(const Picture& picture, Shift shift, std::vector<float>& rows);

}  // namespace stamps
