#include "vocabulary.hpp"

#include <algorithm>
#include <queue>
#include <unordered_map>

#include <troupe/base/text.hpp>

#include "byte_level.hpp"
#include "unicode.hpp"

namespace qwen_vl {

using troupe::Errc;
using troupe::fail;
using troupe::Result;
using troupe::text;

namespace {

/// A distinct piece of the corpus and how often it stands there.
struct Word {
  std::vector<std::uint32_t> symbols;
  std::int64_t count = 0;
};

std::vector<Word> words_of(std::span<const std::string> lines, const VocabularyOptions& options, const std::array<std::uint32_t, 256>& byte_ids) {
  std::unordered_map<std::string, std::size_t> index;
  std::vector<Word> words;
  const auto count_pieces = [&](std::string_view plain) {
    for (std::size_t begin = 0; begin < plain.size();) {
      const std::size_t end = piece_end(options.split, plain, begin);
      const auto [at, fresh] = index.try_emplace(std::string(plain.substr(begin, end - begin)), words.size());
      if (fresh) {
        Word& word = words.emplace_back();
        for (const char c : at->first) word.symbols.push_back(byte_ids[static_cast<std::uint8_t>(c)]);
      }
      ++words[at->second].count;
      begin = end;
    }
  };
  AddedMatcher matcher;
  for (const AddedToken& token : options.added) matcher.add(token.content, 0);
  for (const std::string& line : lines) {
    const std::string clean = to_nfc(is_utf8(line) ? line : repair_utf8(line));
    std::size_t begin = 0;
    while (const auto match = matcher.next(clean, begin)) {
      count_pieces(std::string_view(clean).substr(begin, match->begin - begin));
      begin = match->end;
    }
    count_pieces(std::string_view(clean).substr(begin));
  }
  return words;
}

class Trainer {
 public:
  explicit Trainer(std::vector<Word> words) : words_(std::move(words)) {
    for (std::uint32_t word = 0; word < words_.size(); ++word) {
      const auto& symbols = words_[word].symbols;
      for (std::size_t i = 0; i + 1 < symbols.size(); ++i) change(key_of(symbols[i], symbols[i + 1]), words_[word].count, word);
    }
    push_touched();
  }

  /// The pair to merge next. Empty when none is frequent enough.
  std::optional<std::pair<std::uint32_t, std::uint32_t>> best(std::int64_t least) {
    while (!queue_.empty()) {
      const auto [count, inverse] = queue_.top();
      const std::uint64_t key = ~inverse;
      if (count < least) return std::nullopt;
      if (pairs_[key].count == count) return std::pair{static_cast<std::uint32_t>(key >> 32), static_cast<std::uint32_t>(key)};
      queue_.pop();   // its count has changed since; the new one is in the queue too
    }
    return std::nullopt;
  }

  void merge(std::uint32_t left, std::uint32_t right, std::uint32_t result) {
    const std::vector<std::uint32_t> where = std::move(pairs_[key_of(left, right)].words);
    for (std::size_t i = 0; i < where.size(); ++i) {
      if (i == 0 || where[i] != where[i - 1]) merge_in(where[i], left, right, result);
    }
    pairs_.erase(key_of(left, right));
    push_touched();
  }

 private:
  struct Pair {
    std::int64_t count = 0;
    std::vector<std::uint32_t> words;   ///< Where it stands or stood.
  };
  static std::uint64_t key_of(std::uint32_t left, std::uint32_t right) { return static_cast<std::uint64_t>(left) << 32 | right; }

  void change(std::uint64_t key, std::int64_t by, std::uint32_t word) {
    Pair& pair = pairs_[key];
    pair.count += by;
    if (by > 0 && (pair.words.empty() || pair.words.back() != word)) pair.words.push_back(word);
    touched_.push_back(key);
  }

  void push_touched() {
    std::sort(touched_.begin(), touched_.end());
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    for (const std::uint64_t key : touched_) {
      const auto pair = pairs_.find(key);
      if (pair != pairs_.end() && pair->second.count > 0) queue_.emplace(pair->second.count, ~key);
    }
    touched_.clear();
  }

  void merge_in(std::uint32_t index, std::uint32_t left, std::uint32_t right, std::uint32_t result) {
    auto& [symbols, count] = words_[index];
    std::size_t kept = 0;
    for (std::size_t i = 0; i < symbols.size(); ++i) {
      if (i + 1 == symbols.size() || symbols[i] != left || symbols[i + 1] != right) {
        symbols[kept++] = symbols[i];
        continue;
      }
      if (kept > 0) {
        change(key_of(symbols[kept - 1], left), -count, index);
        change(key_of(symbols[kept - 1], result), count, index);
      }
      if (i + 2 < symbols.size()) {
        change(key_of(right, symbols[i + 2]), -count, index);
        change(key_of(result, symbols[i + 2]), count, index);
      }
      symbols[kept++] = result;
      ++i;
    }
    symbols.resize(kept);
  }

  std::vector<Word> words_;
  std::unordered_map<std::uint64_t, Pair> pairs_;
  std::priority_queue<std::pair<std::int64_t, std::uint64_t>> queue_;   ///< Count, inverted key: of equal counts the lower key is on top.
  std::vector<std::uint64_t> touched_;
};

/// Adds merges and their tokens to `parts`, up to `room` tokens. No two merges make the same token: what stands between two borders is cut
/// the same way wherever it stands.
void learn(Trainer trainer, std::int64_t room, std::int64_t least, TokenizerParts& parts) {
  while (static_cast<std::int64_t>(parts.tokens.size()) < room) {
    const auto pair = trainer.best(least);
    if (!pair) return;
    const auto [left, right] = *pair;
    const auto result = static_cast<std::uint32_t>(parts.tokens.size());
    parts.merges.push_back({left, right, result});
    parts.tokens.push_back(parts.tokens[left] + parts.tokens[right]);
    trainer.merge(left, right, result);
  }
}

}  // namespace

Result<Tokenizer> train_vocabulary(std::span<const std::string> lines, const VocabularyOptions& options) {
  const auto room = options.size - static_cast<std::int64_t>(options.added.size());
  if (room < 256) return fail(Errc::kInvalidArgument, text("a vocabulary of ", options.size, " has no room for 256 bytes and ", options.added.size(), " added tokens"));
  const bool empty = std::any_of(options.added.begin(), options.added.end(), [](const AddedToken& token) { return token.content.empty(); });
  if (empty) return fail(Errc::kInvalidArgument, "an added token of a vocabulary is empty");
  TokenizerParts parts;
  parts.split = options.split;
  std::array<std::uint32_t, 256> byte_ids{};
  for (const std::uint8_t byte : byte_order()) {
    byte_ids[byte] = static_cast<std::uint32_t>(parts.tokens.size());
    parts.tokens.emplace_back(1, static_cast<char>(byte));
  }
  learn(Trainer(words_of(lines, options, byte_ids)), room, options.least_count, parts);
  for (AddedToken token : options.added) {
    token.id = static_cast<std::int64_t>(parts.tokens.size());
    parts.tokens.push_back(token.content);
    parts.added.push_back(std::move(token));
  }
  auto made = Tokenizer::make(std::move(parts), "the trained vocabulary");
  if (!made) return fail(Errc::kInvalidArgument, made.error().message);
  return made;
}

}  // namespace qwen_vl
