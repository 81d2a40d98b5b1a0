#include "png.hpp"

#include <array>
#include <cstdint>

#include <troupe/base/text.hpp>

#include "exif.hpp"

namespace qwen_vl {
namespace {

using troupe::text;

constexpr std::string_view kSignature("\x89PNG\r\n\x1a\n", 8);
constexpr std::size_t kAround = 12;   // bytes of a chunk beside its content: length, type, checksum

std::uint32_t number(std::string_view bytes) {
  std::uint32_t out = 0;
  for (const char byte : bytes.substr(0, 4)) out = out << 8 | static_cast<unsigned char>(byte);
  return out;
}

/// CRC-32 tables for eight bytes at a time ("slicing by 8"). Source: Kounavis and Berry, "Novel Table Lookup-Based Algorithms for High-Performance CRC Generation".
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;
constexpr Tables make_tables() {
  Tables out{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0xEDB88320U : 0U);
    out[0][i] = value;
  }
  for (std::size_t table = 1; table < 8; ++table) {
    for (std::size_t i = 0; i < 256; ++i) out[table][i] = out[table - 1][i] >> 8 ^ out[0][out[table - 1][i] & 0xFF];
  }
  return out;
}

std::uint32_t checksum(std::string_view bytes) {
  static constexpr Tables kTables = make_tables();
  std::uint32_t crc = 0xFFFFFFFFU;
  const auto at = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])); };
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    const std::uint32_t low = crc ^ (at(0) | at(1) << 8 | at(2) << 16 | at(3) << 24);
    crc = kTables[7][low & 0xFF] ^ kTables[6][low >> 8 & 0xFF] ^ kTables[5][low >> 16 & 0xFF] ^ kTables[4][low >> 24] ^ kTables[3][at(4)] ^ kTables[2][at(5)] ^ kTables[1][at(6)] ^
          kTables[0][at(7)];
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) crc = kTables[0][(crc ^ at(i)) & 0xFF] ^ crc >> 8;
  return ~crc;
}

}  // namespace

bool is_png(std::string_view bytes) { return bytes.starts_with(kSignature); }

PngNotes png_notes(std::string_view bytes) {
  PngNotes out;
  std::size_t at = kSignature.size();
  while (true) {
    const std::string_view rest = bytes.substr(at);
    if (rest.size() < kAround) return {text("ends at byte ", bytes.size(), " without its IEND chunk")};
    const std::size_t length = number(rest);
    const std::string_view type = rest.substr(4, 4);
    if (length > rest.size() - kAround) return {text("is cut short: its chunk at byte ", at, " should have ", length, " bytes, ", rest.size() - kAround, " are there")};
    const std::uint32_t expected = number(rest.substr(8 + length));
    if (checksum(rest.substr(4, 4 + length)) != expected) return {text("is broken: the checksum of its chunk at byte ", at, " is wrong")};
    if (type == "eXIf") out.orientation = exif_orientation(rest.substr(8, length));
    if (type == "IEND") return out;
    at += kAround + length;
  }
}

}  // namespace qwen_vl
