#include "token_table.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace qwen_vl {
namespace {

template <class Word>
std::uint64_t load(const char* from) {
  Word word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
  return hash ^ (hash >> 29);
}

/// Words of eight bytes, the last one overlapping: most pieces of text take one or two multiplications.
std::uint64_t hash_of(std::string_view token) {
  const char* data = token.data();
  const std::size_t size = token.size();
  std::uint64_t hash = size * 0xD6E8FEB86659FD93ull;
  if (size >= 8) {
    for (std::size_t i = 0; i + 8 < size; i += 8) hash = mix(hash, load<std::uint64_t>(data + i));
    hash = mix(hash, load<std::uint64_t>(data + size - 8));
  } else if (size >= 4) {
    hash = mix(hash, load<std::uint32_t>(data) << 32 | load<std::uint32_t>(data + size - 4));
  } else if (size > 0) {
    hash = mix(hash, load<std::uint8_t>(data) << 16 | load<std::uint8_t>(data + size / 2) << 8 | load<std::uint8_t>(data + size - 1));
  }
  hash *= 0xFF51AFD7ED558CCDull;
  return hash ^ (hash >> 32);
}

}  // namespace

TokenTable::TokenTable(const std::vector<std::string>& tokens, const std::vector<std::int64_t>& hidden)
    : slots_(std::bit_ceil(tokens.size() + tokens.size() / 2 + 2)) {
  std::size_t total = 0;
  for (const auto& token : tokens) total += token.size();
  bytes_.reserve(total);
  starts_.reserve(tokens.size() + 1);
  for (const auto& token : tokens) {
    bytes_ += token;
    starts_.push_back(bytes_.size());
  }
  for (std::uint32_t id = 0; id < tokens.size(); ++id) {
    if (std::binary_search(hidden.begin(), hidden.end(), id)) continue;
    const std::uint64_t hash = hash_of(tokens[id]);
    Slot& slot = slots_[slot_of(tokens[id], hash)];
    if (slot.next == 0) slot = {static_cast<std::uint32_t>(hash >> 32), id + 1};
  }
}

std::size_t TokenTable::slot_of(std::string_view token, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  const auto tag = static_cast<std::uint32_t>(hash >> 32);
  std::size_t i = hash & mask;
  while (slots_[i].next != 0 && (slots_[i].tag != tag || at(slots_[i].next - 1) != token)) i = (i + 1) & mask;
  return i;
}

std::optional<std::uint32_t> TokenTable::find(std::string_view token) const {
  const Slot& slot = slots_[slot_of(token, hash_of(token))];
  if (slot.next == 0) return std::nullopt;
  return slot.next - 1;
}

}  // namespace qwen_vl
