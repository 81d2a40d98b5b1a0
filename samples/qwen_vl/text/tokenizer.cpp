#include "tokenizer.hpp"

#include <algorithm>
#include <unordered_map>

#include <troupe/base/text.hpp>

#include "byte_level.hpp"
#include "token_table.hpp"
#include "tokenizer_files.hpp"
#include "unicode.hpp"

namespace qwen_vl {

using troupe::Errc;
using troupe::fail;
using troupe::Result;
using troupe::text;

struct Tokenizer::State {
  State(TokenizerParts parts, TokenTable table, const std::array<std::uint32_t, 256>& bytes)
      : parts(std::move(parts)), table(std::move(table)), bpe(this->table, this->parts.merges, bytes, this->parts.whole_first) {
    for (const AddedToken& token : this->parts.added) {
      const bool late = token.normalized && this->parts.normalize;
      (token.normalized ? normalized : raw).add(late ? to_nfc(token.content) : token.content, token.id);
      added_ids.emplace(token.content, token.id);
      if (token.special) specials.push_back(token.id);
    }
    std::sort(specials.begin(), specials.end());
  }

  void encode_plain(std::string_view text, Bpe::Scratch& scratch, std::vector<std::int64_t>& out) const {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = piece_end(parts.split, text, begin);
      bpe.encode(text.substr(begin, end - begin), scratch, out);
      begin = end;
    }
  }

  /// Gives `plain` the stretches between the matches and appends the ids of those.
  template <class Plain>
  static void around(const AddedMatcher& matcher, std::string_view text, std::vector<std::int64_t>& out, const Plain& plain) {
    std::size_t begin = 0;
    while (const auto match = matcher.next(text, begin)) {
      plain(text.substr(begin, match->begin - begin));
      out.push_back(match->id);
      begin = match->end;
    }
    plain(text.substr(begin));
  }

  TokenizerParts parts;
  TokenTable table;
  Bpe bpe;
  AddedMatcher raw, normalized;                            ///< Looked for before and after normalization.
  std::unordered_map<std::string, std::int64_t> added_ids;
  std::vector<std::int64_t> specials;                      ///< Sorted.
};

namespace {

Result<std::array<std::uint32_t, 256>> byte_ids(const TokenTable& table, const std::string& name) {
  std::array<std::uint32_t, 256> ids{};
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const std::string one(1, static_cast<char>(byte));
    const auto id = table.find(one);
    if (!id) return fail(Errc::kBadData, text(name, ": no token for the byte ", byte, " ('", to_byte_level(one), "'); a byte-level vocabulary has all 256"));
    ids[byte] = *id;
  }
  return ids;
}

Result<void> check_added(const TokenizerParts& parts, const std::string& name) {
  std::unordered_map<std::string_view, std::int64_t> seen;
  for (const AddedToken& token : parts.added) {
    const std::string what = text(name, ": added token '", token.content, "' (id ", token.id, ")");
    if (token.content.empty()) return fail(Errc::kBadData, what + " is empty");
    if (!is_utf8(token.content)) return fail(Errc::kBadData, what + " is no well-formed UTF-8");
    if (token.id < 0 || token.id >= static_cast<std::int64_t>(parts.tokens.size())) return fail(Errc::kBadData, text(what, ": there are ", parts.tokens.size(), " tokens"));
    if (!token.in_model && parts.tokens[static_cast<std::size_t>(token.id)] != token.content) return fail(Errc::kBadData, what + ": another token has this id");
    if (const auto [at, fresh] = seen.emplace(token.content, token.id); !fresh) return fail(Errc::kBadData, text(what, ": listed before with id ", at->second));
  }
  return {};
}

Result<void> check_model(const TokenizerParts& parts, const TokenTable& table, const std::vector<std::int64_t>& hidden, const std::string& name) {
  for (std::uint32_t id = 0; id < table.size(); ++id) {
    const std::string shown = to_byte_level(table.at(id));
    if (table.at(id).empty()) return fail(Errc::kBadData, text(name, ": the token with id ", id, " is empty"));
    if (std::binary_search(hidden.begin(), hidden.end(), id)) continue;
    const auto first = table.find(table.at(id));
    if (first != id) return fail(Errc::kBadData, text(name, ": ids ", first.value_or(id), " and ", id, " are the same token '", shown, "'"));
  }
  for (std::size_t i = 0; i < parts.merges.size(); ++i) {
    const auto& [left, right, result] = parts.merges[i];
    const bool known = left < table.size() && right < table.size() && result < table.size();
    if (!known || table.at(result).size() != table.at(left).size() + table.at(right).size() || !table.at(result).starts_with(table.at(left)) ||
        !table.at(result).ends_with(table.at(right))) {
      return fail(Errc::kBadData, text(name, ": merge ", i, ": ids ", left, " and ", right, " don't make id ", result));
    }
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (const Merge& merge : parts.merges) pairs.emplace_back(merge.left, merge.right);
  std::sort(pairs.begin(), pairs.end());
  if (const auto twice = std::adjacent_find(pairs.begin(), pairs.end()); twice != pairs.end()) {
    return fail(Errc::kBadData, text(name, ": '", to_byte_level(table.at(twice->first)), "' and '", to_byte_level(table.at(twice->second)), "' are merged twice"));
  }
  return {};
}

}  // namespace

Result<Tokenizer> Tokenizer::make(TokenizerParts parts, const std::string& name) {
  if (const auto checked = check_added(parts, name); !checked) return fail(checked.error());
  std::vector<std::int64_t> hidden;
  for (const AddedToken& token : parts.added) {
    if (!token.in_model) hidden.push_back(token.id);
  }
  std::sort(hidden.begin(), hidden.end());
  TokenTable table(parts.tokens, hidden);
  if (const auto checked = check_model(parts, table, hidden, name); !checked) return fail(checked.error());
  const auto bytes = byte_ids(table, name);
  if (!bytes) return fail(bytes.error());
  return Tokenizer(std::make_shared<const State>(std::move(parts), std::move(table), *bytes));
}

std::vector<std::int64_t> Tokenizer::encode(std::string_view text) const {
  const State& state = *state_;
  std::string repaired, composed;
  if (!is_utf8(text)) text = repaired = repair_utf8(text);
  std::vector<std::int64_t> out;
  out.reserve(text.size() / 3 + 8);
  Bpe::Scratch scratch;
  State::around(state.raw, text, out, [&](std::string_view rest) {
    if (state.parts.normalize && !is_plainly_nfc(rest)) rest = composed = to_nfc(rest);
    State::around(state.normalized, rest, out, [&](std::string_view plain) { state.encode_plain(plain, scratch, out); });
  });
  return out;
}

Result<std::string> Tokenizer::decode(std::span<const std::int64_t> ids, Specials specials) const {
  std::string out;
  for (const std::int64_t id : ids) {
    const auto bytes = bytes_of(id);
    if (!bytes) return fail(bytes.error());
    if (specials == Specials::kSkip && std::binary_search(state_->specials.begin(), state_->specials.end(), id)) continue;
    out += *bytes;
  }
  return is_utf8(out) ? out : repair_utf8(out);
}

Result<std::string_view> Tokenizer::bytes_of(std::int64_t id) const {
  if (id < 0 || id >= size()) return fail(Errc::kInvalidArgument, text("there is no token ", id, ": the tokenizer has ", size()));
  return state_->table.at(static_cast<std::uint32_t>(id));
}

std::optional<std::int64_t> Tokenizer::id_of(std::string_view token) const {
  if (const auto at = state_->added_ids.find(std::string(token)); at != state_->added_ids.end()) return at->second;
  if (const auto id = state_->table.find(token)) return *id;
  return std::nullopt;
}

std::int64_t Tokenizer::size() const { return static_cast<std::int64_t>(state_->table.size()); }

const TokenizerParts& Tokenizer::parts() const { return state_->parts; }

Result<void> Tokenizer::save(const std::string& path) const { return write_tokenizer_json(parts(), path); }

}  // namespace qwen_vl
