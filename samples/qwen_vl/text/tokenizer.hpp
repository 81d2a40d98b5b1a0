#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/base/result.hpp>

#include "added_tokens.hpp"
#include "bpe.hpp"
#include "split.hpp"

namespace qwen_vl {

/// Everything that makes a tokenizer, as plain data.
struct TokenizerParts {
  std::vector<std::string> tokens;   ///< The bytes of each token, by id without gaps; an added token's content at its id.
  std::vector<Merge> merges;         ///< Lowest rank first.
  std::vector<AddedToken> added;
  Split split = Split::kQwen2;
  bool normalize = true;             ///< To NFC, before the split.
  bool whole_first = false;          ///< A piece that is a token is that token, whatever the merges say (`ignore_merges`).
  bool operator==(const TokenizerParts&) const = default;
};

struct LoadOptions {
  /// What a file of tiktoken ranks lacks: these get the ids behind the last rank, in this order. Other files bring their own.
  std::vector<AddedToken> added = qwen_added_tokens();
};

/// What decode() does with tokens marked special.
enum class Specials : std::uint8_t { kKeep, kSkip };

/// A byte-level BPE tokenizer, equal to PyPI transformers' fast one for Qwen2 (tests/golden/text). Copies share one read-only state; any thread.
class Tokenizer {
 public:
  /// Reads `path`: a folder, a `tokenizer.json`, a `vocab.json` (with `merges.txt` beside it) or a file of tiktoken ranks (any other name). Of a folder it
  /// takes tokenizer.json, else vocab.json, else its one *.tiktoken. Beside a vocab.json, tokenizer_config.json and added_tokens.json give the added tokens.
  /// A post-processor, truncation and padding are not read: encode() adds and drops nothing.
  /// Fails with: kIo; kBadData for a broken file; kUnavailable for a model, normalizer or pattern that this program has not. Each names file and entry.
  [[nodiscard]] static troupe::Result<Tokenizer> load(const std::string& path, const LoadOptions& options = {});

  /// The content of a tokenizer.json; `name` stands for the file in errors. Fails as load() does.
  [[nodiscard]] static troupe::Result<Tokenizer> parse_json(std::string_view bytes, const std::string& name);

  /// Fails with: kBadData for equal tokens, a byte without a token, a merge that does not fit, an added token that does not.
  [[nodiscard]] static troupe::Result<Tokenizer> make(TokenizerParts parts, const std::string& name);

  /// The ids of `text`; added tokens in it are recognised, none is put around it. Ill-formed UTF-8 counts as U+FFFD, one for each maximal stretch.
  [[nodiscard]] std::vector<std::int64_t> encode(std::string_view text) const;

  /// The text of `ids`, as well-formed UTF-8: bytes that are none (a character cut in two) become U+FFFD. For a stream, join bytes_of() instead.
  /// Fails with: kInvalidArgument for an id outside [0, size()), as a model with padded rows can give.
  [[nodiscard]] troupe::Result<std::string> decode(std::span<const std::int64_t> ids, Specials specials = Specials::kKeep) const;

  /// The bytes of one token, alive as long as any copy of the tokenizer. Fails with: kInvalidArgument.
  [[nodiscard]] troupe::Result<std::string_view> bytes_of(std::int64_t id) const;

  /// The id of the token with these bytes (" the", not "Ġthe"); added tokens first.
  [[nodiscard]] std::optional<std::int64_t> id_of(std::string_view token) const;

  /// Number of tokens, added ones included. A model may have more rows.
  [[nodiscard]] std::int64_t size() const;

  [[nodiscard]] const TokenizerParts& parts() const;

  /// Writes a tokenizer.json that transformers, tokenizers and load() read: `path` itself or, when that is a folder, the file in it. Whole or not at all.
  /// Fails with: kIo.
  [[nodiscard]] troupe::Result<void> save(const std::string& path) const;

 private:
  struct State;
  explicit Tokenizer(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;   ///< Shared by the copies; never changes.
};

}  // namespace qwen_vl
