#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/base/result.hpp>

#include "conversation.hpp"
#include "picture.hpp"

namespace qwen_vl {

/// A picture that is not decoded yet: a file, or bytes in memory (from a tar).
struct PictureSource {
  std::string name;         ///< The file's path; of bytes, what messages call it.
  std::string bytes = {};   ///< Empty: they are in the file.

  /// Fails with: kIo, kBadData, as decode_picture().
  [[nodiscard]] troupe::Result<Picture> load() const;
};

/// A video as frames in order.
struct VideoSource {
  std::string folder = {};   ///< Where the frames were looked for; empty when they were listed one by one.
  std::vector<PictureSource> frames;
  double frames_per_second = 2;   ///< Of the frames here. Qwen2.5-VL's processor takes two a second.
};

/// One sample: who says what, and the pictures and videos in the order in which the conversation shows them.
/// There are as many pictures as parts of Kind::kImage, and as many videos as parts of Kind::kVideo.
struct Record {
  std::string id;      ///< As written; empty when the sample has none.
  Conversation conversation;
  std::vector<PictureSource> pictures;
  std::vector<VideoSource> videos;
  std::string where;   ///< "file:line" or "archive.tar: key", for messages.
};

/// Whether the line breaks that touch a placeholder are text.
enum class LineBreaks : std::uint8_t {
  kDrop,   ///< One on each side belongs to the notation: "<image>\nWhat is this?" is a picture and "What is this?".
  kKeep,   ///< All are text.
};

struct RecordOptions {
  std::string picture_root = {};   ///< Relative paths of pictures start here; empty: in the folder of the file that names them.
  LineBreaks line_breaks = LineBreaks::kDrop;
  std::string caption_prompt = "Describe the picture.";   ///< What the user asks where a sample has a caption and no conversation.
  std::string caption_language = "en";   ///< Which of the languages in Tux Paint's captions.
};

/// One record from JSON, in LLaVA's or ShareGPT's form ("conversations" of {"from", "value"}) or as chat messages ("messages" of {"role", "content"}).
/// A turn's text holds <image> and <video> where one is shown, taken in order from the record's "image" / "images" and "video" / "videos"; a list of
/// content parts ({"type": "text" | "image" | "video", ...}) may also name its own. A video is a folder of frames or a list of them. Unknown keys are
/// ignored. Paths stay as written and no file is touched.
/// Fails with: kBadData for what is no such JSON; kMismatch when placeholders and pictures (or videos) differ in number. Messages start with `where`.
[[nodiscard]] troupe::Result<Record> parse_record(std::string_view json, const std::string& where, const RecordOptions& options = {});

/// The same with pictures from elsewhere, in the order shown: what the JSON calls its pictures is not looked at.
[[nodiscard]] troupe::Result<Record> parse_record(std::string_view json, const std::string& where, std::vector<PictureSource> pictures, const RecordOptions& options);

/// Puts `root` before relative paths, lists the frames in folders of videos (in natural order: frame 2 before frame 10) and looks whether every file is there.
/// Fails with: kIo naming record, picture and path; kBadData for addresses that are no files and videos that are no folder of frames.
[[nodiscard]] troupe::Result<void> find_pictures(Record& record, const std::string& root);

/// Records by number, read when asked for. Thread: any, also several at once.
class RecordSource {
 public:
  virtual ~RecordSource() = default;
  /// At least 1.
  [[nodiscard]] virtual std::int64_t size() const = 0;
  /// Fails with: kInvalidArgument for no such number; else as parse_record() and find_pictures().
  [[nodiscard]] virtual troupe::Result<Record> read(std::int64_t number) const = 0;
};

/// Opens records: a folder as pictures with captions (CaptionFolder), *.tar as WebDataset (TarRecords), anything else as JSON lines or a JSON array (RecordFile).
/// Fails with: kIo; kBadData for a broken archive or array, and when there is no record.
[[nodiscard]] troupe::Result<std::unique_ptr<RecordSource>> open_records(const std::string& path, const RecordOptions& options = {});

/// Checks every record of a source, so that a bad line shows before training and not after an hour of it.
/// Fails with: the first failure of read().
[[nodiscard]] troupe::Result<void> check_records(const RecordSource& source);

}  // namespace qwen_vl
