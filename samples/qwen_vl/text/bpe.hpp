#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "token_table.hpp"

namespace qwen_vl {

/// Two neighbours that become one token. The position in the list of merges is the rank: lower ones go first.
struct Merge {
  std::uint32_t left = 0, right = 0, result = 0;
  bool operator==(const Merge&) const = default;
};

/// Rank and result of a pair of tokens: a hash table with open addressing. Fixed once made; any thread.
class PairTable {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  struct Found {
    std::uint32_t rank = kNone, result = 0;
  };

  explicit PairTable(const std::vector<Merge>& merges);
  /// rank kNone when the pair never merges.
  [[nodiscard]] Found find(std::uint32_t left, std::uint32_t right) const;

 private:
  struct Slot {
    std::uint64_t key = ~0ull;
    Found found;
  };
  [[nodiscard]] std::size_t slot_of(std::uint64_t key) const;

  std::vector<Slot> slots_;
  int shift_;
};

/// Byte pair encoding of one piece of text: its bytes' tokens, then the pair of lowest rank merged (the leftmost of equals) until none is left.
/// Source: Sennrich et al. 2016, arXiv 1508.07909. Fixed once made; any thread.
class Bpe {
 public:
  /// Memory of one encoding after another, so that a piece costs no allocation. One per thread.
  struct Scratch {
    struct Symbol {
      std::uint32_t id = 0;
      PairTable::Found pair;            ///< With the symbol behind it.
      std::uint32_t before = 0, after = 0;  ///< Positions; only long pieces use them.
    };
    struct Candidate {
      std::uint32_t rank, at, left, right;
    };
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;
  };

  /// `byte_ids`: the token of each byte. `whole_first`: a piece that is a token is that token, whatever the merges say.
  /// `tokens` is used for as long as this lives.
  Bpe(const TokenTable& tokens, const std::vector<Merge>& merges, const std::array<std::uint32_t, 256>& byte_ids, bool whole_first);

  /// Appends the tokens of `piece`. Takes time in O(n log n).
  void encode(std::string_view piece, Scratch& scratch, std::vector<std::int64_t>& out) const;

 private:
  void merge(std::string_view piece, Scratch& scratch) const;
  void merge_short(std::vector<Scratch::Symbol>& symbols) const;
  void merge_long(Scratch& scratch) const;

  const TokenTable& tokens_;
  PairTable pairs_;
  std::array<std::uint32_t, 256> byte_ids_;
  std::vector<bool> whole_;   ///< By id: the merges make this token out of its own bytes, so it needs none.
};

}  // namespace qwen_vl
