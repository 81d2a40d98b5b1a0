// Everything on disk but the reading of tokenizer.json.
#include "tokenizer_files.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include <troupe/base/text.hpp>

#include "byte_level.hpp"

namespace qwen_vl {

using nlohmann::json;
using troupe::Errc;
using troupe::fail;
using troupe::Result;
using troupe::text;
namespace fs = std::filesystem;

namespace {

[[noreturn]] void bad(Errc code, const std::string& message) { throw troupe::Exception({code, message}); }

json parse_object(const std::string& path) {
  json document;
  try {
    document = json::parse(read_file(path));
  } catch (const json::exception& error) {
    bad(Errc::kBadData, text(path, ": ", error.what()));
  }
  if (!document.is_object()) bad(Errc::kBadData, text(path, ": expected an object, got ", document.type_name()));
  return document;
}

/// Calls line(text, number from 1) for each line; the last may lack its end.
template <class Line>
void each_line(std::string_view bytes, const Line& line) {
  for (std::size_t begin = 0, number = 1; begin < bytes.size(); ++number) {
    const std::size_t end = std::min(bytes.find('\n', begin), bytes.size());
    std::string_view one = bytes.substr(begin, end - begin);
    if (one.ends_with('\r')) one.remove_suffix(1);
    line(one, number);
    begin = end + 1;
  }
}

std::optional<std::int64_t> number_of(std::string_view digits) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

/// `tokenizer_class` says which pattern a vocab.json is meant for; Qwen's when nothing does.
void read_class(const json& config, PartsDraft& draft) {
  const json name = config.value("tokenizer_class", json("Qwen2Tokenizer"));
  if (name == "Qwen2Tokenizer" || name == "Qwen2TokenizerFast") return;
  if (name != "GPT2Tokenizer" && name != "GPT2TokenizerFast") {
    draft.bad(text("tokenizer_class is ", name.dump(), "; beside a vocab.json this program has Qwen2Tokenizer and GPT2Tokenizer"), Errc::kUnavailable);
  }
  draft.parts().split = Split::kGpt2;
  draft.parts().normalize = false;
}

void read_decoder(const json& config, PartsDraft& draft) {
  const json table = config.value("added_tokens_decoder", json::object());
  if (!table.is_object()) draft.bad(text("added_tokens_decoder: expected an object, got ", table.type_name()));
  for (const auto& [key, entry] : table.items()) {
    const std::string place = text("added_tokens_decoder['", key, "']");
    const auto id = number_of(key);
    if (!id || !entry.is_object()) draft.bad(place + ": expected an object under an id");
    const json content = entry.value("content", json());
    if (!content.is_string()) draft.bad(text(place, ".content: expected a string, got ", content.type_name()));
    for (const char* flag : {"single_word", "lstrip", "rstrip"}) {
      if (entry.value(flag, json(false)) != false) draft.bad(text(place, ".", flag, " must be false: this program's added tokens take nothing beside them"), Errc::kUnavailable);
    }
    const bool special = entry.value("special", json(false)) == true;
    draft.added({content.get<std::string>(), *id, special, entry.value("normalized", json(!special)) == true});
  }
}

void read_added_tokens(const json& table, PartsDraft& draft) {
  for (const auto& [content, id] : table.items()) {
    if (!id.is_number_integer()) draft.bad(text("'", content, "': expected an id, got ", id.dump()));
    const auto& known = draft.parts().added;
    const auto number = id.get<std::int64_t>();
    const bool listed = std::any_of(known.begin(), known.end(), [&, &word = content](const AddedToken& token) { return token.content == word && token.id == number; });
    if (!listed) draft.added({content, number});
  }
}

/// The file that a folder's tokenizer is in.
std::string file_of(const fs::path& folder) {
  for (const char* name : {"tokenizer.json", "vocab.json"}) {
    if (fs::exists(folder / name)) return (folder / name).string();
  }
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".tiktoken") found.push_back(entry.path().string());
  }
  if (found.size() == 1) return found[0];
  bad(Errc::kIo, text(folder.string(), ": expected tokenizer.json, or vocab.json with merges.txt, or one *.tiktoken; found ", found.size(), " of the last"));
}

TokenizerParts parts_of(const std::string& file, const LoadOptions& options) {
  if (fs::path(file).filename() == "vocab.json") return parts_of_vocabulary(file);
  if (file.ends_with(".json")) return parts_of_json(read_file(file), file);
  return parts_of_ranks(read_file(file), file, options.added);
}

json to_json(const AddedToken& token) {
  return {{"id", token.id}, {"content", token.content}, {"single_word", false}, {"lstrip", false}, {"rstrip", false}, {"normalized", token.normalized}, {"special", token.special}};
}

json model_of(const TokenizerParts& parts) {
  std::vector<bool> outside(parts.tokens.size(), false);   // added tokens behind the model's last: tokenizers numbers those itself
  for (const AddedToken& token : parts.added) outside[static_cast<std::size_t>(token.id)] = !token.in_model;
  std::size_t count = parts.tokens.size();
  while (count > 0 && outside[count - 1]) --count;
  json vocabulary = json::object(), merges = json::array();
  for (std::size_t id = 0; id < count; ++id) vocabulary[outside[id] ? parts.tokens[id] : to_byte_level(parts.tokens[id])] = id;
  for (const auto& [left, right, result] : parts.merges) merges.push_back({to_byte_level(parts.tokens[left]), to_byte_level(parts.tokens[right])});
  return {{"type", "BPE"}, {"dropout", nullptr}, {"unk_token", nullptr}, {"continuing_subword_prefix", ""}, {"end_of_word_suffix", ""}, {"fuse_unk", false},
          {"byte_fallback", false}, {"ignore_merges", parts.whole_first}, {"vocab", std::move(vocabulary)}, {"merges", std::move(merges)}};
}

json document_of(const TokenizerParts& parts) {
  const bool own_pattern = parts.split == Split::kGpt2;
  const json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", own_pattern}};
  const json pattern = {{"Regex", pattern_of(parts.split)}};
  const json cut = {{"type", "Split"}, {"pattern", pattern}, {"behavior", "Isolated"}, {"invert", false}};
  std::vector<AddedToken> by_id = parts.added;
  std::sort(by_id.begin(), by_id.end(), [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  json added = json::array();
  for (const AddedToken& token : by_id) added.push_back(to_json(token));
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", std::move(added)},
          {"normalizer", parts.normalize ? json{{"type", "NFC"}} : json()},
          {"pre_tokenizer", own_pattern ? bytes : json{{"type", "Sequence"}, {"pretokenizers", json::array({cut, bytes})}}},
          {"post_processor", nullptr},
          {"decoder", bytes},
          {"model", model_of(parts)}};
}

}  // namespace

std::string read_file(const std::string& path) {
  constexpr std::uintmax_t kMost = 512u << 20;
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) bad(Errc::kIo, text(path, ": can't read: ", error.message()));
  if (size > kMost) bad(Errc::kBadData, text(path, ": ", size, " bytes; a tokenizer file has at most ", kMost));
  std::string bytes(size, '\0');
  std::ifstream in(path, std::ios::binary);
  if (!in.read(bytes.data(), static_cast<std::streamsize>(size))) bad(Errc::kIo, text(path, ": can't read: ", std::strerror(errno)));
  return bytes;
}

TokenizerParts parts_of_vocabulary(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  const auto beside = [&](const char* name) { return (folder / name).string(); };
  PartsDraft draft(path);
  const json vocabulary = parse_object(path);
  for (const auto& [key, id] : vocabulary.items()) {
    if (!id.is_number_integer()) draft.bad(text("'", key, "': expected an id, got ", id.dump(-1, ' ', false, json::error_handler_t::replace)));
    draft.token(key, id.get<std::int64_t>());
  }
  if (const std::string file = beside("tokenizer_config.json"); fs::exists(file)) {
    draft.in_file(file);
    const json config = parse_object(file);
    read_class(config, draft);
    read_decoder(config, draft);
  }
  if (const std::string file = beside("added_tokens.json"); fs::exists(file)) {
    draft.in_file(file);
    read_added_tokens(parse_object(file), draft);
  }
  draft.in_file(path);
  draft.seal();
  draft.in_file(beside("merges.txt"));
  each_line(read_file(beside("merges.txt")), [&](std::string_view line, std::size_t number) {
    if (line.empty() || (number == 1 && line.starts_with("#version"))) return;
    draft.merge_line(line, {"line ", number});
  });
  return std::move(draft.parts());
}

TokenizerParts parts_of_ranks(std::string_view bytes, const std::string& name, std::vector<AddedToken> added) {
  TokenizerParts parts;
  each_line(bytes, [&](std::string_view line, std::size_t number) {
    if (line.empty()) return;
    const std::size_t space = line.find(' ');
    const auto token = from_base64(line.substr(0, space));
    const auto rank = space == std::string_view::npos ? std::nullopt : number_of(line.substr(space + 1));
    if (!token || token->empty() || !rank) bad(Errc::kBadData, text(name, ": line ", number, ": expected 'base64 rank', got '", line.substr(0, 60), "'"));
    if (*rank != static_cast<std::int64_t>(parts.tokens.size())) bad(Errc::kBadData, text(name, ": line ", number, ": expected rank ", parts.tokens.size(), ", got ", *rank));
    parts.tokens.push_back(*token);
  });
  const TokenTable table(parts.tokens);
  for (std::uint32_t id = 0; id < parts.tokens.size(); ++id) {
    const std::string_view token = parts.tokens[id];
    const std::size_t before = parts.merges.size();
    for (std::size_t cut = 1; cut < token.size(); ++cut) {
      const auto left = table.find(token.substr(0, cut));
      const auto right = left ? table.find(token.substr(cut)) : std::nullopt;
      if (right) parts.merges.push_back({*left, *right, id});
    }
    // Ranks say which token goes first; among the pairs that make one, transformers' converter takes the lower left side first.
    std::sort(parts.merges.begin() + static_cast<std::ptrdiff_t>(before), parts.merges.end(), [](const Merge& a, const Merge& b) { return a.left < b.left; });
  }
  for (AddedToken& token : added) {
    token.id = static_cast<std::int64_t>(parts.tokens.size());
    parts.tokens.push_back(token.content);
  }
  parts.added = std::move(added);
  return parts;
}

Result<void> write_tokenizer_json(const TokenizerParts& parts, const std::string& path) {
  std::error_code error;
  const std::string target = fs::is_directory(path, error) ? (fs::path(path) / "tokenizer.json").string() : path;
  const std::string part = target + ".part";
  std::ofstream out(part, std::ios::binary);
  out << document_of(parts) << '\n';
  out.close();
  if (!out) return fail(Errc::kIo, text(part, ": can't write: ", std::strerror(errno)));
  fs::rename(part, target, error);
  if (error) return fail(Errc::kIo, text(target, ": can't write: ", error.message()));
  return {};
}

Result<Tokenizer> Tokenizer::load(const std::string& path, const LoadOptions& options) {
  try {
    const std::string file = fs::is_directory(path) ? file_of(path) : path;
    return make(parts_of(file, options), file);
  } catch (...) {
    return fail(troupe::error_from_current_exception(Errc::kIo));
  }
}

Result<Tokenizer> Tokenizer::parse_json(std::string_view bytes, const std::string& name) {
  try {
    return make(parts_of_json(bytes, name), name);
  } catch (...) {
    return fail(troupe::error_from_current_exception(Errc::kBadData));
  }
}

}  // namespace qwen_vl
