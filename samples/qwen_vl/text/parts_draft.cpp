#include <algorithm>
#include <unordered_map>

#include <troupe/base/text.hpp>

#include "byte_level.hpp"
#include "tokenizer_files.hpp"

namespace qwen_vl {

using troupe::text;

namespace {

/// A token as an error shows it: not too long.
std::string shown(std::string_view token) {
  constexpr std::size_t kMost = 80;
  std::size_t end = std::min(token.size(), kMost);
  while (end < token.size() && end > 0 && (static_cast<unsigned char>(token[end]) & 0xC0) == 0x80) --end;
  return text("'", token.substr(0, end), end < token.size() ? "...'" : "'");
}

std::string shown(const Place& place) { return text(place.before, place.number, place.after); }

}  // namespace

void PartsDraft::bad(const std::string& message, troupe::Errc code) const { throw troupe::Exception({code, text(name_, ": ", message)}); }

void PartsDraft::check_id(std::string_view key, std::int64_t id) const {
  if (id < 0 || id > 0x7FFFFFFF) bad(text("the token ", shown(key), " has id ", id, "; ids start at 0 and have no gaps"));
}

void PartsDraft::token(std::string_view key, std::int64_t id) {
  check_id(key, id);
  auto bytes = from_byte_level(key);
  const bool foreign = !bytes;
  entries_.push_back({id, std::string(key), foreign ? std::string(key) : std::move(*bytes), foreign});
}

void PartsDraft::added(AddedToken token) {
  check_id(token.content, token.id);
  parts_.added.push_back(std::move(token));
}

/// Marks the added tokens that the model lists too, and adds the others.
void PartsDraft::join_added() {
  std::unordered_map<std::string_view, AddedToken*> by_content;
  for (AddedToken& token : parts_.added) by_content.emplace(token.content, &token);
  std::erase_if(entries_, [&](const Entry& entry) {
    const auto at = by_content.find(entry.key);
    if (at == by_content.end()) {
      if (entry.foreign) bad(text("the token ", shown(entry.key), " (id ", entry.id, ") is not written in the byte-level alphabet, and no added token"));
      return false;
    }
    if (at->second->id != entry.id) bad(text("the added token ", shown(entry.key), " has id ", at->second->id, ", but ", entry.id, " in the vocabulary"));
    at->second->in_model = !entry.foreign;
    return entry.foreign;
  });
  for (const AddedToken& token : parts_.added) {
    if (!token.in_model) entries_.push_back({token.id, token.content, token.content});
  }
}

void PartsDraft::seal() {
  join_added();
  std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.id < b.id; });
  const auto twice = std::adjacent_find(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.id == b.id; });
  if (twice != entries_.end()) bad(text("the tokens ", shown(twice->key), " and ", shown(std::next(twice)->key), " both have id ", twice->id));
  for (const Entry& entry : entries_) {
    const auto wanted = static_cast<std::int64_t>(parts_.tokens.size());
    if (entry.id != wanted) bad(text("no token has id ", wanted, "; the next is ", shown(entry.key), " with id ", entry.id, ". Ids must have no gaps"));
    parts_.tokens.push_back(entry.bytes);
  }
  entries_.clear();
  std::vector<std::int64_t> hidden;
  for (const AddedToken& token : parts_.added) {
    if (!token.in_model) hidden.push_back(token.id);
  }
  std::sort(hidden.begin(), hidden.end());
  table_ = TokenTable(parts_.tokens, hidden);
}

std::uint32_t PartsDraft::model_id(std::string_view key, const Place& place) const {
  const auto bytes = from_byte_level(key);
  const auto id = bytes ? table_.find(*bytes) : std::nullopt;
  if (!id) bad(text(shown(place), ": ", shown(key), " is no token of the vocabulary"));
  return *id;
}

void PartsDraft::merge(std::string_view left, std::string_view right, const Place& place) {
  const std::uint32_t first = model_id(left, place), second = model_id(right, place);
  parts_.merges.push_back({first, second, model_id(std::string(left).append(right), place)});
}

void PartsDraft::merge_line(std::string_view line, const Place& place) {
  const std::size_t space = line.find(' ');
  if (space == 0 || space == std::string_view::npos || space + 1 == line.size() || line.find(' ', space + 1) != std::string_view::npos) {
    bad(text(shown(place), ": expected two tokens with one space between, got ", shown(line)));
  }
  merge(line.substr(0, space), line.substr(space + 1), place);
}

}  // namespace qwen_vl
