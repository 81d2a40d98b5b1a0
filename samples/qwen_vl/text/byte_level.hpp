#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace qwen_vl {

/// The 256 bytes in the order in which byte-level vocabularies number them: the printable ones of Latin-1, then the others.
/// Source: the alphabet of GPT-2 (Radford et al. 2019), which gives each byte a printable character.
[[nodiscard]] const std::array<std::uint8_t, 256>& byte_order();

/// Bytes as the text that vocab.json and tokenizer.json hold: one printable character a byte (a space becomes U+0120).
[[nodiscard]] std::string to_byte_level(std::string_view bytes);

/// The other way. Empty when `text` holds a character outside the alphabet or is no UTF-8.
[[nodiscard]] std::optional<std::string> from_byte_level(std::string_view text);

/// Standard base64 with its padding, as tiktoken's files have it. Empty when it is none.
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);

}  // namespace qwen_vl
