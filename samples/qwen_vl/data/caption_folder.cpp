#include "caption_folder.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <troupe/base/text.hpp>

#include "caption.hpp"
#include "file_bytes.hpp"
#include "natural_order.hpp"

namespace qwen_vl {
namespace {

namespace fs = std::filesystem;
using troupe::Errc;
using troupe::Result;
using troupe::text;

constexpr std::int64_t kMaxCaptionBytes = 1 << 20;

/// Where a picture's caption lies, if anywhere.
std::optional<fs::path> caption_file(const fs::path& picture) {
  constexpr std::string_view kMirror = "_mirror";
  std::string stem = picture.stem().string();
  std::error_code ignored;
  if (fs::path own = fs::path(picture).replace_extension(".txt"); fs::is_regular_file(own, ignored)) return own;
  if (!stem.ends_with(kMirror)) return std::nullopt;
  stem.resize(stem.size() - kMirror.size());
  if (fs::path original = picture.parent_path() / (stem + ".txt"); fs::is_regular_file(original, ignored)) return original;
  return std::nullopt;
}

Result<std::string> caption_of(const fs::path& picture, const std::string& language) {
  const auto path = caption_file(picture);
  if (!path) return std::string();
  const auto file = FileBytes::open(path->string());
  if (!file) return troupe::fail(file.error());
  if (file->size() > kMaxCaptionBytes) return troupe::fail(Errc::kBadData, text(path->string(), ": a caption of ", file->size(), " bytes; at most ", kMaxCaptionBytes, " are read"));
  const auto content = file->read(0, file->size());
  if (!content) return troupe::fail(content.error());
  return caption_in(*content, path->string(), language);
}

Result<std::vector<fs::path>> pictures_below(const std::string& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (is_picture_extension(at->path().extension().string())) out.push_back(at->path());
  }
  if (error) return troupe::fail(Errc::kIo, text("data folder ", folder, " can't be read: ", error.message()));
  std::ranges::sort(out);   // the order of a folder is the file system's
  return out;
}

}  // namespace

Result<CaptionFolder> CaptionFolder::open(const std::string& folder, const RecordOptions& options) {
  const auto pictures = pictures_below(folder);
  if (!pictures) return troupe::fail(pictures.error());
  CaptionFolder out(folder, options.caption_prompt);
  for (const fs::path& picture : *pictures) {
    auto caption = caption_of(picture, options.caption_language);
    if (!caption) return troupe::fail(caption.error());
    if (caption->empty()) {
      ++out.without_caption_;
      continue;
    }
    out.all_.push_back({picture.string(), fs::path(picture).replace_extension().lexically_relative(folder).generic_string(), std::move(*caption)});
  }
  if (out.all_.empty()) {
    return troupe::fail(Errc::kBadData, text("data folder ", folder, ": expected pictures with captions (name.txt) in '", options.caption_language, "' beside them, found ",
                                             out.without_caption_, " pictures, none with a caption"));
  }
  return out;
}

Result<Record> CaptionFolder::read(std::int64_t number) const {
  if (number < 0 || number >= size()) return troupe::fail(Errc::kInvalidArgument, text(folder_, ": record ", number, " of ", size()));
  const Captioned& one = all_[static_cast<std::size_t>(number)];
  Record out = caption_record(one.caption, {{one.picture}}, prompt_, one.picture);
  out.id = one.id;
  return out;
}

}  // namespace qwen_vl
