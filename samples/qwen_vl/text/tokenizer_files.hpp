#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <troupe/base/result.hpp>

#include "tokenizer.hpp"

/// What the readers and the writer of tokenizer files share. Those that return a plain value throw a troupe::Exception, which load() and parse_json() turn into
/// a Result: a reader nested five deep says what is wrong where it sees it.
namespace qwen_vl {

/// The whole of a regular file. Throws: kIo; kBadData past 512 MiB, which no tokenizer is.
[[nodiscard]] std::string read_file(const std::string& path);

/// Parts of a tokenizer.json. Throws: kBadData, kUnavailable.
[[nodiscard]] TokenizerParts parts_of_json(std::string_view bytes, const std::string& name);

/// Parts of a vocab.json with merges.txt, and of tokenizer_config.json and added_tokens.json where they lie beside it. Throws: kIo, kBadData, kUnavailable.
[[nodiscard]] TokenizerParts parts_of_vocabulary(const std::string& path);

/// Parts of tiktoken ranks, `base64 rank` a line; `added` behind them. Throws: kBadData.
[[nodiscard]] TokenizerParts parts_of_ranks(std::string_view bytes, const std::string& name, std::vector<AddedToken> added);

/// See Tokenizer::save().
[[nodiscard]] troupe::Result<void> write_tokenizer_json(const TokenizerParts& parts, const std::string& path);

/// Where a message points: an entry of a table, spelled out only when there is a message.
struct Place {
  std::string_view before;
  std::size_t number = 0;
  std::string_view after = {};
};

/// Collects tokens as files list them, checks them, and puts them in order. Throws kBadData with the file's name before each message.
class PartsDraft {
 public:
  explicit PartsDraft(std::string name) : name_(std::move(name)) {}

  /// The file that later messages name.
  void in_file(std::string name) { name_ = std::move(name); }
  /// A token of the model by its text in the byte-level alphabet.
  void token(std::string_view key, std::int64_t id);
  /// May repeat a token of the model, under the same id.
  void added(AddedToken token);
  /// Ends the tokens: their ids must run from 0 without gaps or repeats.
  void seal();
  /// A merge of two tokens of the model by their text in the byte-level alphabet; after seal().
  void merge(std::string_view left, std::string_view right, const Place& place);
  /// As merge(), of the form "left right".
  void merge_line(std::string_view line, const Place& place);

  [[nodiscard]] TokenizerParts& parts() { return parts_; }
  [[noreturn]] void bad(const std::string& message, troupe::Errc code = troupe::Errc::kBadData) const;

 private:
  struct Entry {
    std::int64_t id;
    std::string key, bytes;
    bool foreign = false;   ///< Not of the alphabet: only a token that is added too may be.
  };
  void join_added();
  void check_id(std::string_view key, std::int64_t id) const;
  [[nodiscard]] std::uint32_t model_id(std::string_view key, const Place& place) const;

  std::string name_;
  std::vector<Entry> entries_;
  TokenTable table_;
  TokenizerParts parts_;
};

}  // namespace qwen_vl
