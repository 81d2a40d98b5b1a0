#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace qwen_vl {

/// Byte strings by number, and the number of a byte string, without an allocation in either direction. Fixed once made; any thread.
class TokenTable {
 public:
  TokenTable() = default;
  /// `tokens` by id. Those of `hidden` (sorted ids) have a text but aren't found by it. Of equal strings the first is found.
  explicit TokenTable(const std::vector<std::string>& tokens, const std::vector<std::int64_t>& hidden = {});

  [[nodiscard]] std::size_t size() const { return starts_.size() - 1; }
  /// Needs id < size().
  [[nodiscard]] std::string_view at(std::uint32_t id) const { return {bytes_.data() + starts_[id], starts_[id + 1] - starts_[id]}; }
  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view token) const;

 private:
  struct Slot {
    std::uint32_t tag = 0;   ///< Upper half of the hash.
    std::uint32_t next = 0;  ///< id + 1; 0: empty.
  };
  [[nodiscard]] std::size_t slot_of(std::string_view token, std::uint64_t hash) const;

  std::string bytes_;
  std::vector<std::size_t> starts_ = {0};
  std::vector<Slot> slots_ = {Slot{}};   ///< A power of two of them, at most two thirds full.
};

}  // namespace qwen_vl
