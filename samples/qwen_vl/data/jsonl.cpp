#include "jsonl.hpp"

#include <filesystem>
#include <utility>

#include <troupe/base/text.hpp>

namespace qwen_vl {

using troupe::Errc;
using troupe::Result;
using troupe::text;

namespace {

constexpr std::int64_t kChunk = std::int64_t{1} << 20;

}  // namespace

Result<RecordFile> RecordFile::open(const std::string& path, const RecordOptions& options) {
  auto file = FileBytes::open(path);
  if (!file) return troupe::fail(file.error());
  RecordIndex index(path);
  for (std::int64_t offset = 0; offset < file->size(); offset += kChunk) {
    const auto bytes = file->read(offset, kChunk);
    if (!bytes) return troupe::fail(bytes.error());
    if (auto ok = index.feed(*bytes); !ok) return troupe::fail(ok.error());
  }
  auto places = index.finish();
  if (!places) return troupe::fail(places.error());
  RecordOptions resolved = options;
  if (resolved.picture_root.empty()) resolved.picture_root = std::filesystem::path(path).parent_path().string();
  return RecordFile(std::move(*file), std::move(*places), std::move(resolved));
}

Result<Record> RecordFile::read(std::int64_t number) const {
  if (number < 0 || number >= size()) return troupe::fail(Errc::kInvalidArgument, text(file_.path(), ": record ", number, " of ", size()));
  const RecordPlace place = places_[static_cast<std::size_t>(number)];
  const std::string where = text(file_.path(), ":", place.line);
  const auto bytes = file_.read(place.offset, place.length);
  if (!bytes) return troupe::fail(bytes.error());
  if (std::ssize(*bytes) != place.length) return troupe::fail(Errc::kIo, text(where, ": expected ", place.length, " bytes, could read ", bytes->size(), "; was the file changed?"));
  auto record = parse_record(*bytes, where, options_);
  if (!record) return record;
  if (auto ok = find_pictures(*record, options_.picture_root); !ok) return troupe::fail(ok.error());
  return record;
}

Result<std::vector<Record>> read_jsonl(const std::string& path, const RecordOptions& options) {
  const auto file = RecordFile::open(path, options);
  if (!file) return troupe::fail(file.error());
  std::vector<Record> out;
  for (std::int64_t i = 0; i < file->size(); ++i) {
    auto record = file->read(i);
    if (!record) return troupe::fail(record.error());
    out.push_back(std::move(*record));
  }
  return out;
}

}  // namespace qwen_vl
