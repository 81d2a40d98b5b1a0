#include "png.hpp"

#include <algorithm>
#include <array>

#include <troupe/base/text.hpp>

namespace stamps {
namespace {

using troupe::text;

constexpr std::array<std::uint8_t, 8> kSignature = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
constexpr std::size_t kChunkFrame = 12;  // length, type and checksum around a chunk's data

std::uint32_t big_endian(std::span<const std::uint8_t> bytes) {
  return static_cast<std::uint32_t>(bytes[0]) << 24 | static_cast<std::uint32_t>(bytes[1]) << 16 | static_cast<std::uint32_t>(bytes[2]) << 8 | bytes[3];
}

constexpr std::array<std::uint32_t, 256> kCrcTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320U : 0U);
    table[byte] = crc;
  }
  return table;
}();

std::uint32_t crc_of(std::span<const std::uint8_t> bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const auto byte : bytes) crc = kCrcTable[(crc ^ byte) & 0xff] ^ (crc >> 8);
  return ~crc;
}

}  // namespace

std::string png_fault(std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) return "expected a PNG, got 0 bytes";
  if (bytes.size() < kSignature.size() || !std::equal(kSignature.begin(), kSignature.end(), bytes.begin())) {
    return text("expected the 8 bytes that begin a PNG, got something else in a file of ", bytes.size(), " bytes");
  }
  std::size_t at = kSignature.size();
  for (bool end = false; !end;) {
    if (bytes.size() - at < kChunkFrame) return text("truncated: expected a chunk at byte ", at, ", got the end of the file");
    const std::uint32_t length = big_endian(bytes.subspan(at));
    const std::string type(bytes.begin() + static_cast<std::ptrdiff_t>(at) + 4, bytes.begin() + static_cast<std::ptrdiff_t>(at) + 8);
    if (bytes.size() - at - kChunkFrame < length) {
      return text("truncated: expected ", length, " bytes in the chunk at byte ", at, ", got ", bytes.size() - at - kChunkFrame);
    }
    if (crc_of(bytes.subspan(at + 4, length + 4)) != big_endian(bytes.subspan(at + 8 + length))) {
      return text("broken: the chunk at byte ", at, " has another checksum than it says");
    }
    end = type == "IEND";
    at += kChunkFrame + length;
  }
  return "";
}

}  // namespace stamps
