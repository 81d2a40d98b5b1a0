#include "records.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include <troupe/base/text.hpp>

#include "caption_folder.hpp"
#include "jsonl.hpp"
#include "natural_order.hpp"
#include "tar.hpp"

namespace qwen_vl {
namespace {

namespace fs = std::filesystem;
using troupe::Errc;
using troupe::Result;
using troupe::text;

/// The path that `written` means. Fails for what is no path on this machine.
Result<std::string> path_of(std::string written, const std::string& root, const std::string& what) {
  constexpr std::string_view kFile = "file://";
  if (written.starts_with(kFile)) written.erase(0, kFile.size());
  if (written.find("://") != std::string::npos || written.starts_with("data:")) {
    return troupe::fail(Errc::kBadData, text(what, " is ", written.substr(0, 80), ": pictures must be files on this machine; nothing is fetched from a network"));
  }
  if (written.find('\0') != std::string::npos) return troupe::fail(Errc::kBadData, text(what, " has a path with a zero byte"));
  const fs::path path(written);
  return path.is_absolute() || root.empty() ? written : (fs::path(root) / path).string();
}

Result<void> find_picture(PictureSource& picture, const std::string& root, const std::string& what) {
  if (!picture.bytes.empty()) return {};
  const auto path = path_of(picture.name, root, what);
  if (!path) return troupe::fail(path.error());
  std::error_code error;
  const fs::file_status status = fs::status(*path, error);
  if (!fs::exists(status)) return troupe::fail(Errc::kIo, text(what, ": ", *path, " is not there", error && error != std::errc::no_such_file_or_directory ? " (" + error.message() + ")" : ""));
  if (!fs::is_regular_file(status)) return troupe::fail(Errc::kIo, text(what, ": ", *path, " is no file"));
  picture.name = *path;
  return {};
}

/// Every picture in a folder, in natural order.
Result<std::vector<PictureSource>> frames_in(const std::string& folder, const std::string& what) {
  std::error_code error;
  if (!fs::exists(folder, error)) return troupe::fail(Errc::kIo, text(what, ": ", folder, " is not there"));
  if (!fs::is_directory(folder, error)) {
    return troupe::fail(Errc::kBadData, text(what, ": ", folder, " is no folder: a video is a folder of frames, or a list of them; films are not decoded here"));
  }
  std::vector<PictureSource> out;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (is_picture_extension(at->path().extension().string())) out.push_back({at->path().string()});
  }
  if (error) return troupe::fail(Errc::kIo, text(what, ": ", folder, " can't be read: ", error.message()));
  if (out.empty()) return troupe::fail(Errc::kBadData, text(what, ": ", folder, " holds no frame (.png, .jpg, .jpeg, .bmp, .gif, .tga, .ppm, .pgm)"));
  std::ranges::sort(out, in_natural_order, &PictureSource::name);
  return out;
}

Result<void> find_video(VideoSource& video, const std::string& root, const std::string& what) {
  if (video.frames.empty()) {
    auto folder = path_of(video.folder, root, what);
    if (!folder) return troupe::fail(folder.error());
    auto frames = frames_in(*folder, what);
    if (!frames) return troupe::fail(frames.error());
    video = {*folder, std::move(*frames), video.frames_per_second};
    return {};
  }
  for (std::size_t i = 0; i < video.frames.size(); ++i) {
    if (auto ok = find_picture(video.frames[i], root, text(what, ", frame ", i)); !ok) return ok;
  }
  return {};
}

}  // namespace

Result<Picture> PictureSource::load() const { return bytes.empty() ? read_picture(name) : decode_picture(bytes, name); }

Result<void> find_pictures(Record& record, const std::string& root) {
  for (std::size_t i = 0; i < record.pictures.size(); ++i) {
    if (auto ok = find_picture(record.pictures[i], root, text(record.where, ": picture ", i)); !ok) return ok;
  }
  for (std::size_t i = 0; i < record.videos.size(); ++i) {
    if (auto ok = find_video(record.videos[i], root, text(record.where, ": video ", i)); !ok) return ok;
  }
  return {};
}

Result<std::unique_ptr<RecordSource>> open_records(const std::string& path, const RecordOptions& options) {
  const auto owned = [](auto source) -> Result<std::unique_ptr<RecordSource>> {
    if (!source) return troupe::fail(source.error());
    using Source = typename decltype(source)::value_type;
    return std::make_unique<Source>(std::move(*source));
  };
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return owned(CaptionFolder::open(path, options));
  if (fs::path(path).extension() == ".tar") return owned(TarRecords::open(path, options));
  return owned(RecordFile::open(path, options));
}

Result<void> check_records(const RecordSource& source) {
  for (std::int64_t i = 0; i < source.size(); ++i) {
    if (const auto record = source.read(i); !record) return troupe::fail(record.error());
  }
  return {};
}

}  // namespace qwen_vl
