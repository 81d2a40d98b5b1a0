// Members of a tar as samples and records.
#include <algorithm>
#include <cctype>
#include <utility>

#include <nlohmann/json.hpp>

#include <troupe/base/text.hpp>

#include "caption.hpp"
#include "natural_order.hpp"
#include "tar.hpp"

namespace qwen_vl {

using nlohmann::json;
using troupe::Errc;
using troupe::Result;
using troupe::text;

namespace {

/// "a/b.0.jpg" is ("a/b", "0.jpg"); no dot, no key.
std::optional<std::pair<std::string, std::string>> split_name(const std::string& name) {
  const std::size_t base = name.rfind('/') == std::string::npos ? 0 : name.rfind('/') + 1;
  const std::size_t dot = name.find('.', base);
  if (dot == std::string::npos || dot == base) return std::nullopt;
  if (name.compare(base, 2, "__") == 0 && name.ends_with("__")) return std::nullopt;
  std::string extension = name.substr(dot + 1);
  std::ranges::transform(extension, extension.begin(), [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  return std::pair(name.substr(0, dot), std::move(extension));
}

bool is_picture(const TarSample::File& file) { return is_picture_extension(file.extension.substr(file.extension.rfind('.') + 1)); }

const TarSample::File* find(const TarSample& sample, std::string_view extension) {
  const auto found = std::ranges::find(sample.files, extension, &TarSample::File::extension);
  return found == sample.files.end() ? nullptr : &*found;
}

std::string extensions_of(const TarSample& sample) {
  std::string out;
  for (const auto& file : sample.files) out += (out.empty() ? "." : ", .") + file.extension;
  return out.size() > 80 ? out.substr(0, 80) + "..." : out;
}

/// What a .json file beside pictures says.
struct Words {
  bool has_conversation = false;
  std::string caption;
};

Words words_in(const std::string& content) {
  const json root = json::parse(content, nullptr, false);
  if (root.is_discarded()) return {.has_conversation = true, .caption = {}};   // parse_record() says what is wrong with it
  if (!root.is_object()) return {};
  const auto caption = root.find("caption");
  return {root.contains("conversations") || root.contains("messages"), caption != root.end() && caption->is_string() ? caption->get<std::string>() : ""};
}

}  // namespace

Result<std::vector<TarSample>> index_samples(TarReader& tar) {
  std::vector<TarSample> out;
  for (;;) {
    auto member = tar.next();
    if (!member) return troupe::fail(member.error());
    if (!*member) break;
    auto name = split_name((*member)->name);
    if (!name) continue;
    if (out.empty() || out.back().key != name->first) out.push_back({name->first, {}});
    if (find(out.back(), name->second) != nullptr) {
      return troupe::fail(Errc::kBadData, text(tar.path(), ": at byte ", (*member)->header, ": member '", (*member)->name, "' occurs twice in its sample"));
    }
    out.back().files.push_back({std::move(name->second), std::move(**member)});
  }
  if (out.empty()) return troupe::fail(Errc::kBadData, text(tar.path(), ": expected samples (KEY.json, KEY.jpg, ...), found none"));
  return out;
}

Result<TarRecords> TarRecords::open(const std::string& path, const RecordOptions& options) {
  auto tar = TarReader::open(path);
  if (!tar) return troupe::fail(tar.error());
  auto samples = index_samples(*tar);
  if (!samples) return troupe::fail(samples.error());
  return TarRecords(std::move(*tar), std::move(*samples), options);
}

Result<std::vector<PictureSource>> TarRecords::pictures_of(const TarSample& sample, const std::string& where) const {
  std::vector<const TarSample::File*> files;
  for (const auto& file : sample.files) {
    if (is_picture(file)) files.push_back(&file);
  }
  std::ranges::sort(files, in_natural_order, &TarSample::File::extension);
  std::vector<PictureSource> out;
  for (const auto* file : files) {
    if (file->member.size == 0) return troupe::fail(Errc::kBadData, text(where, ": member '", file->member.name, "' is empty"));
    auto bytes = tar_.read(file->member);
    if (!bytes) return troupe::fail(bytes.error());
    out.push_back({text(tar_.path(), ": ", file->member.name), std::move(*bytes)});
  }
  return out;
}

Result<Record> TarRecords::record_from(const std::string& json, std::vector<PictureSource> pictures, const std::string& where) const {
  auto out = pictures.empty() ? parse_record(json, where, options_) : parse_record(json, where, std::move(pictures), options_);
  if (!out) return out;
  if (auto ok = find_pictures(*out, options_.picture_root); !ok) return troupe::fail(ok.error());
  return out;
}

Result<Record> TarRecords::read(std::int64_t number) const {
  if (number < 0 || number >= size()) return troupe::fail(Errc::kInvalidArgument, text(tar_.path(), ": record ", number, " of ", size()));
  const TarSample& sample = samples_[static_cast<std::size_t>(number)];
  const std::string where = text(tar_.path(), ": ", sample.key);
  auto pictures = pictures_of(sample, where);
  if (!pictures) return troupe::fail(pictures.error());
  std::string caption;
  if (const auto* file = find(sample, "json"); file != nullptr) {
    const auto content = tar_.read(file->member);
    if (!content) return troupe::fail(content.error());
    const Words words = words_in(*content);
    if (words.has_conversation) return record_from(*content, std::move(*pictures), where);
    caption = words.caption;
  }
  if (const auto* file = find(sample, "txt"); file != nullptr) {
    const auto content = tar_.read(file->member);
    if (!content) return troupe::fail(content.error());
    auto words = caption_in(*content, text(where, ": member '", file->member.name, "'"), options_.caption_language);
    if (!words) return troupe::fail(words.error());
    caption = std::move(*words);
  }
  if (caption.empty()) {
    return troupe::fail(Errc::kBadData, text(where, ": expected a .json with 'conversations', 'messages' or 'caption', or a .txt with a caption, got ", extensions_of(sample)));
  }
  return caption_record(std::move(caption), std::move(*pictures), options_.caption_prompt, where);
}

}  // namespace qwen_vl
