// Merges by rank, against a slow twin that follows the definition.
#include "bpe.hpp"
#include "support.hpp"

namespace qwen_vl {
namespace {

/// The bytes, then a token for each merge. Merges name tokens by id.
struct Model {
  explicit Model(std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs) {
    for (int byte = 0; byte < 256; ++byte) {
      tokens.emplace_back(1, static_cast<char>(byte));
      bytes[static_cast<std::size_t>(byte)] = static_cast<std::uint32_t>(byte);
    }
    for (const auto& [left, right] : pairs) {
      merges.push_back({left, right, static_cast<std::uint32_t>(tokens.size())});
      tokens.push_back(tokens[left] + tokens[right]);
    }
    table = TokenTable(tokens);
  }
  [[nodiscard]] std::vector<std::int64_t> encode(std::string_view piece, bool whole_first = false) const {
    const Bpe bpe(table, merges, bytes, whole_first);
    Bpe::Scratch scratch;
    std::vector<std::int64_t> out;
    bpe.encode(piece, scratch, out);
    return out;
  }
  /// The definition: again and again, the lowest rank that stands anywhere, at its leftmost place.
  [[nodiscard]] std::vector<std::int64_t> slow(std::string_view piece) const {
    std::vector<std::int64_t> ids(piece.size());
    for (std::size_t i = 0; i < piece.size(); ++i) ids[i] = static_cast<std::uint8_t>(piece[i]);
    for (std::size_t rank = 0; rank < merges.size();) {
      std::size_t i = 0;
      while (i + 1 < ids.size() && (ids[i] != merges[rank].left || ids[i + 1] != merges[rank].right)) ++i;
      if (i + 1 >= ids.size()) {
        ++rank;
        continue;
      }
      ids[i] = merges[rank].result;
      ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      rank = 0;
    }
    return ids;
  }
  std::vector<std::string> tokens;
  std::vector<Merge> merges;
  std::array<std::uint32_t, 256> bytes{};
  TokenTable table;
};

TEST(Bpe, MergesByRankNotByLength) {
  const Model model({{'b', 'c'}, {'a', 'b'}, {257, 'c'}});   // bc 256, ab 257, abc 258
  EXPECT_EQ(model.encode("abc"), (std::vector<std::int64_t>{'a', 256})) << "bc has the lowest rank, and a does not join bc";
  EXPECT_EQ(model.encode("abb"), (std::vector<std::int64_t>{257, 'b'}));
}

TEST(Bpe, TakesTheLeftmostOfEqualRanks) {
  const Model model({{'a', 'a'}});
  EXPECT_EQ(model.encode("aaa"), (std::vector<std::int64_t>{256, 'a'}));
  EXPECT_EQ(model.encode(std::string(101, 'a')).back(), 'a') << "long pieces take another way to the same end";
}

TEST(Bpe, AWholePieceIsItsTokenOnlyWhenTheMergesMakeIt) {
  const Model model({{'b', 'c'}, {'a', 'b'}, {257, 'c'}});
  EXPECT_EQ(model.encode("abc", true), (std::vector<std::int64_t>{258})) << "ignore_merges asks for the token";
  EXPECT_EQ(model.encode("bc"), (std::vector<std::int64_t>{256}));
}

TEST(Bpe, ShortAndLongPiecesAgreeWithTheDefinition) {
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
    std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
    const auto any = [&] {   // letters a..c, or an earlier merge
      const auto pick = static_cast<std::uint32_t>(random() % (3 + pairs.size()));
      return pick < 3 ? 'a' + pick : 256 + pick - 3;
    };
    for (int i = 0; i < 25; ++i) {
      const std::pair pair{any(), any()};
      if (seen.insert(pair).second) pairs.push_back(pair);
    }
    const Model model(pairs);
    for (const std::size_t size : {2, 3, 7, 47, 48, 49, 50, 150}) {
      std::string piece;
      for (std::size_t i = 0; i < size; ++i) piece += static_cast<char>('a' + random() % 3);
      const auto slow = model.slow(piece);
      std::vector<std::int64_t> got = model.encode(piece);
      // A token made by two different merges has two ids here; compare the bytes of each.
      ASSERT_EQ(got.size(), slow.size()) << piece;
      for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(model.tokens[static_cast<std::size_t>(got[i])], model.tokens[static_cast<std::size_t>(slow[i])]) << piece;
      }
    }
  }
}

TEST(Bpe, AMegabyteWithoutASpaceEndsSoon) {
  const Model model({{'a', 'a'}, {256, 256}, {257, 257}, {'a', 'b'}});
  EXPECT_EQ(model.encode(std::string(1 << 20, 'a')).size(), (1u << 20) / 8);
}

TEST(TokenTable, FindsEveryTokenAndNothingElse) {
  std::mt19937 random(5);
  std::set<std::string> unique;
  while (unique.size() < 5000) {
    std::string token(1 + random() % 20, ' ');
    for (char& c : token) c = static_cast<char>(random() % 4 + (random() % 2 ? 0 : 250));
    unique.insert(token);
  }
  const std::vector<std::string> all(unique.begin(), unique.end());
  const std::vector<std::string> tokens(all.begin(), all.begin() + 2500);
  const TokenTable table(tokens, {0, 7});
  for (std::uint32_t id = 0; id < all.size(); ++id) {
    const auto found = table.find(all[id]);
    if (id < 2500 && id != 0 && id != 7) {
      ASSERT_EQ(found, id);
      EXPECT_EQ(table.at(id), all[id]);
    } else {
      EXPECT_FALSE(found);
    }
  }
  EXPECT_FALSE(table.find(""));
  EXPECT_FALSE(TokenTable().find("x"));
}

}  // namespace
}  // namespace qwen_vl
