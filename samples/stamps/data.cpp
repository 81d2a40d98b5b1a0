#include "data.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include <troupe/base/text.hpp>

namespace stamps {
namespace {

namespace fs = std::filesystem;
using troupe::Errc;
using troupe::Result;
using troupe::text;

constexpr std::uint64_t kHeldOutEvery = 10;

struct Found {
  std::string picture;
  std::string caption;
  std::vector<std::string> words;
  bool held_out = false;
};

std::vector<std::string> split_words(const std::string& line) {
  std::vector<std::string> out;
  std::string word;
  for (const char c : line + " ") {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '\'') {
      word.push_back(static_cast<char>(std::tolower(byte)));
    } else if (!word.empty()) {
      out.push_back(std::move(word));
      word.clear();
    }
  }
  return out;
}

/// FNV-1a of the path below the folder: the same split on every machine.
std::uint64_t hash_of(const std::string& name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash ^ (hash >> 29);
}

/// Tux Paint's own rule: a hand-drawn mirror image has the caption of its original.
fs::path original_of(const fs::path& picture) {
  constexpr std::string_view kMirror = "_mirror";
  std::string stem = picture.stem().string();
  if (stem.ends_with(kMirror)) stem.resize(stem.size() - kMirror.size());
  return picture.parent_path() / stem;
}

std::string first_line(const fs::path& picture) {
  for (const fs::path& file : {fs::path(picture).replace_extension(".txt"), fs::path(original_of(picture).string() + ".txt")}) {
    std::ifstream caption(file);
    std::string line;
    if (caption && std::getline(caption, line)) return line;
  }
  return {};
}

/// Every picture, also those without words.
Result<std::vector<Found>> find_all(const fs::path& folder) {
  std::vector<Found> out;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const fs::path& path = at->path();
    if (path.extension() != ".png") continue;
    const std::string name = fs::path(original_of(path)).lexically_relative(folder).generic_string();
    const std::string caption = first_line(path);
    out.push_back({path.string(), caption, split_words(caption), hash_of(name) % kHeldOutEvery == 0});
  }
  if (error) return troupe::fail(Errc::kIo, text("data folder ", folder.string(), " can't be read: ", error.message()));
  std::ranges::sort(out, {}, &Found::picture);  // the order of a folder is the file system's
  return out;
}

std::map<std::string, std::int64_t> number_words(const std::vector<Found>& all, std::vector<std::string>& words) {
  std::map<std::string, int> counts;
  for (const Found& found : all) {
    if (found.held_out) continue;
    for (const auto& word : found.words) ++counts[word];
  }
  words = {"<pad>", "<begin>", "<end>", "<unknown>"};
  std::map<std::string, std::int64_t> out;
  for (const auto& [word, count] : counts) {
    if (count < 2) continue;
    out[word] = static_cast<std::int64_t>(words.size());
    words.push_back(word);
  }
  return out;
}

std::vector<std::int64_t> tokens_of(const std::vector<std::string>& words, const std::map<std::string, std::int64_t>& numbers) {
  std::vector<std::int64_t> out = {kBegin};
  for (const auto& word : words) {
    if (std::ssize(out) + 1 >= kMaxTokens) break;
    const auto number = numbers.find(word);
    out.push_back(number == numbers.end() ? static_cast<std::int64_t>(kUnknown) : number->second);
  }
  out.push_back(kEnd);
  return out;
}

}  // namespace

Result<Dataset> load_dataset(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return troupe::fail(Errc::kIo, text("data folder ", folder, " is not there; tools/setup installs tuxpaint-stamps-default, or name another by --data"));
  }
  const auto all = find_all(folder);
  if (!all) return troupe::fail(all.error());
  Dataset out;
  const auto numbers = number_words(*all, out.words);
  for (const Found& found : *all) {
    if (found.words.empty()) {
      ++out.without_caption;
      continue;
    }
    (found.held_out ? out.held_out : out.train).push_back({found.picture, found.caption, tokens_of(found.words, numbers)});
    if (std::ssize(found.words) + 2 > kMaxTokens) ++out.shortened;
  }
  if (out.train.empty() || out.held_out.empty()) {
    return troupe::fail(Errc::kBadData, text("data folder ", folder, ": expected PNG pictures with captions (name.txt) beside them, got ", out.train.size(),
                                             " for training and ", out.held_out.size(), " held out"));
  }
  return out;
}

std::string caption_of(const std::vector<std::string>& words, const std::vector<std::int64_t>& tokens) {
  std::string out;
  for (const auto token : tokens) {
    if (token == kEnd) break;
    if (token == kBegin || token == kPad) continue;
    out += (out.empty() ? "" : " ") + words[static_cast<std::size_t>(token)];
  }
  return out;
}

double unigram_loss(const Dataset& data) {
  std::vector<double> counts(data.words.size(), 1.0);  // one more each: a word that training lacks
  double total = static_cast<double>(counts.size());
  for (const Example& example : data.train) {
    for (std::size_t i = 1; i < example.tokens.size(); ++i) ++counts[static_cast<std::size_t>(example.tokens[i])], ++total;
  }
  double sum = 0;
  std::int64_t tokens = 0;
  for (const Example& example : data.held_out) {
    for (std::size_t i = 1; i < example.tokens.size(); ++i) sum -= std::log(counts[static_cast<std::size_t>(example.tokens[i])] / total), ++tokens;
  }
  return sum / static_cast<double>(tokens);
}

}  // namespace stamps
