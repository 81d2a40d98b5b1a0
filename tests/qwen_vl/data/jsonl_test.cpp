// Files of records: lines and arrays, by number, pictures that must be there.
#include "jsonl.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "folder.hpp"

namespace qwen_vl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using test::Folder;
using troupe::Errc;

std::string line_of(const std::string& id, const std::string& image) {
  return R"({"id": ")" + id + R"(", "image": ")" + image + R"(", "conversations": [{"from": "human", "value": "<image>\nWhat?"}, {"from": "gpt", "value": "}]\"["}]})";
}
const std::string kText = R"({"id": "text", "messages": [{"role": "user", "content": "a"}]})";

TEST(RecordFile, ReadsLinesByNumberAndSkipsBlankOnes) {
  const Folder folder;
  folder.write("pictures/a.png", "x");
  const auto path = folder.write("d.jsonl", "\xEF\xBB\xBF\n" + line_of("first", "pictures/a.png") + "\r\n   \n\n" + kText + "\n" + line_of("last", folder / "pictures/a.png"));
  const auto file = RecordFile::open(path);
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->size(), 3);
  EXPECT_EQ(file->read(2)->id, "last");
  EXPECT_EQ(file->read(2)->where, path + ":6");
  EXPECT_EQ(file->read(0)->pictures[0].name, folder / "pictures/a.png");
  EXPECT_EQ(file->read(1)->id, "text");
  EXPECT_EQ(file->read(3).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(file->read(-1).error().code, Errc::kInvalidArgument);
}

TEST(RecordFile, ReadsAnArrayOfRecords) {
  const Folder folder;
  folder.write("root/a.png", "x");
  const auto path = folder.write("d.json", " [\n" + line_of("first", "a.png") + ",\n" + kText + "\n , " + line_of("last", "a.png") + "\n]\n");
  const auto got = read_jsonl(path, {.picture_root = folder / "root"});
  ASSERT_TRUE(got) << got.error().message;
  ASSERT_EQ(got->size(), 3U);
  EXPECT_EQ((*got)[0].conversation.turns[1].parts[0].text, "}]\"[");
  EXPECT_EQ((*got)[2].id, "last");
  EXPECT_EQ((*got)[2].where, path + ":4");
}

TEST(RecordFile, ABadLineIsNamed) {
  const Folder folder;
  const auto path = folder.write("d.jsonl", kText + "\n\n" + kText + "\n{\"id\": oops}\n" + kText + "\n");
  const auto got = read_jsonl(path);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Errc::kBadData);
  EXPECT_THAT(got.error().message, HasSubstr(path + ":4: "));
  const auto source = open_records(path);
  ASSERT_TRUE(source);
  EXPECT_TRUE((*source)->read(3));
  EXPECT_EQ(check_records(**source).error().message, got.error().message);
}

TEST(RecordFile, ABrokenArrayIsNamed) {
  const Folder folder;
  const auto refused = [&](const std::string& content) { return RecordFile::open(folder.write("d.json", content)).error().message; };
  const std::string at = folder / "d.json";
  EXPECT_THAT(refused("[\n" + kText + ",\n{\"id\": "), AllOf(HasSubstr(at + ":3"), HasSubstr("ends inside this record")));
  EXPECT_THAT(refused("[\n" + kText + "\n" + kText + "]"), AllOf(HasSubstr(at + ":3"), HasSubstr("expected ','")));
  EXPECT_THAT(refused("[" + kText + ",]"), HasSubstr("expected a record"));
  EXPECT_THAT(refused("[" + kText + ", 5]"), HasSubstr("expected a record"));
  EXPECT_THAT(refused("[" + kText), HasSubstr("ends inside the array, after 1 records"));
  EXPECT_THAT(refused("[" + kText + "]\nx"), AllOf(HasSubstr(at + ":2"), HasSubstr("nothing may follow")));
  EXPECT_THAT(refused("[]"), HasSubstr("expected records, found none"));
  EXPECT_THAT(refused("\n  \n"), HasSubstr("expected records, found none"));
}

TEST(RecordFile, ARecordWithoutEndIsRefusedEarly) {
  RecordIndex index("f");
  const std::string chunk(kMaxRecordBytes / 4, 'x');
  troupe::Result<void> ok;
  for (int i = 0; i < 5 && ok; ++i) ok = index.feed(chunk);
  ASSERT_FALSE(ok);
  EXPECT_THAT(ok.error().message, HasSubstr("more than"));
}

TEST(RecordFile, MissingFilesAreIo) {
  const Folder folder;
  EXPECT_EQ(RecordFile::open(folder / "no.jsonl").error().code, Errc::kIo);
  EXPECT_THAT(RecordFile::open(folder / "no.jsonl").error().message, HasSubstr("no.jsonl"));
  EXPECT_EQ(RecordFile::open(folder.path()).error().code, Errc::kIo);
}

// "JSONL with a missing picture": line, which picture, where it was looked for
TEST(RecordFile, AMissingPictureNamesLineAndPath) {
  const Folder folder;
  folder.write("a.png", "x");
  const auto path = folder.write("d.jsonl", kText + "\n" + R"({"images": ["a.png", "sub/b.png"], "messages": [{"role": "user", "content": "<image><image>"}]})" + "\n");
  const auto got = read_jsonl(path);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Errc::kIo);
  EXPECT_THAT(got.error().message, AllOf(HasSubstr(path + ":2: picture 1"), HasSubstr((folder / "sub/b.png") + " is not there")));
}

TEST(RecordFile, PicturesFromANetworkAreRefused) {
  const Folder folder;
  const auto path = folder.write("d.jsonl", line_of("a", "https://example.org/a.png") + "\n");
  EXPECT_THAT(read_jsonl(path).error().message, AllOf(HasSubstr(path + ":1: picture 0"), HasSubstr("nothing is fetched")));
}

TEST(RecordFile, AVideoIsAFolderOfFramesInNaturalOrder) {
  const Folder folder;
  for (const char* name : {"clip/f10.png", "clip/f9.png", "clip/f1.JPG", "clip/notes.txt"}) folder.write(name, "x");
  const auto path = folder.write("d.jsonl", R"({"video": "clip", "conversations": [{"from": "human", "value": "<video>\nWhat?"}]})");
  const auto got = read_jsonl(path);
  ASSERT_TRUE(got) << got.error().message;
  const auto& frames = (*got)[0].videos.at(0).frames;
  ASSERT_EQ(frames.size(), 3U);
  EXPECT_EQ(frames[0].name, folder / "clip/f1.JPG");
  EXPECT_EQ(frames[1].name, folder / "clip/f9.png");
  EXPECT_EQ(frames[2].name, folder / "clip/f10.png");
}

TEST(RecordFile, AVideoThatIsNoFolderOfFramesIsNamed) {
  const Folder folder;
  folder.write("film.mp4", "x");
  folder.write("empty/notes.txt", "x");
  const auto refused = [&](const std::string& video) {
    return read_jsonl(folder.write("d.jsonl", R"({"video": ")" + video + R"(", "conversations": [{"from": "human", "value": "<video>"}]})")).error().message;
  };
  EXPECT_THAT(refused("film.mp4"), AllOf(HasSubstr("d.jsonl:1: video 0"), HasSubstr("films are not decoded")));
  EXPECT_THAT(refused("empty"), HasSubstr("holds no frame"));
  EXPECT_THAT(refused("nowhere"), HasSubstr("is not there"));
}

}  // namespace
}  // namespace qwen_vl
