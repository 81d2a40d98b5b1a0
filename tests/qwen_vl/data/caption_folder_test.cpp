// Folders of pictures with captions, among them Tux Paint's stamps.
#include "caption_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caption.hpp"
#include "folder.hpp"

namespace qwen_vl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using test::Folder;
using troupe::Errc;

std::string answer_of(const Record& record) { return record.conversation.turns.at(1).parts.at(0).text; }

TEST(Caption, TakesTheLanguageAskedFor) {
  const std::string stamp = "A dog.\nde.utf8=Ein Hund.\npt_BR.utf8=Um cachorro.\r\nca@valencia.utf8=Un gos.\n";
  EXPECT_EQ(*caption_in(stamp, "f", "en"), "A dog.");
  EXPECT_EQ(*caption_in(stamp, "f", "de"), "Ein Hund.");
  EXPECT_EQ(*caption_in(stamp, "f", "pt_BR"), "Um cachorro.");
  EXPECT_EQ(*caption_in(stamp, "f", "fr"), "");
  EXPECT_EQ(*caption_in("Two\nlines: a.utf8=b\n\n", "f", "en"), "Two\nlines: a.utf8=b");
}

TEST(Caption, WhatIsNoUtf8IsRefused) {
  for (const char* good : {"", "a", "\xC3\xA4", "\xE4\xB8\xAD", "\xF0\x9F\x98\x80", "\xED\x9F\xBF", "\xF4\x8F\xBF\xBF"}) EXPECT_TRUE(is_valid_utf8(good)) << good;
  for (const char* bad : {"\x80", "\xC3", "\xC0\xAF", "\xE4\xB8", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80", "a\xC3(", "\xF0\x9F\x98("}) EXPECT_FALSE(is_valid_utf8(bad)) << bad;
  EXPECT_THAT(caption_in("\xff", "a/b.txt", "en").error().message, HasSubstr("a/b.txt"));
}

TEST(CaptionFolder, AsksAboutEachPictureWithACaption) {
  const Folder folder;
  for (const char* name : {"b/car.png", "b/car_mirror.png", "a/dog.JPG", "a/silent.png", "a/empty.png", "a/german.png"}) folder.write(name, "x");
  folder.write("b/car.txt", "A red car.\nde.utf8=Ein rotes Auto.\n");
  folder.write("a/dog.txt", "A dog.\n");
  folder.write("a/empty.txt", "\n");
  folder.write("a/german.txt", "de.utf8=Ein Hund.\n");
  const auto source = CaptionFolder::open(folder.path(), {.caption_prompt = "What is this?"});
  ASSERT_TRUE(source) << source.error().message;
  ASSERT_EQ(source->size(), 3);
  EXPECT_EQ(source->without_caption(), 3);
  const auto dog = source->read(0);
  ASSERT_TRUE(dog);
  EXPECT_EQ(dog->id, "a/dog");
  EXPECT_EQ(dog->pictures.at(0).name, folder / "a/dog.JPG");
  ASSERT_EQ(dog->conversation.turns.size(), 2U);
  EXPECT_EQ(dog->conversation.turns[0].role, "user");
  EXPECT_EQ(dog->conversation.turns[0].parts.at(0).kind, Part::Kind::kImage);
  EXPECT_EQ(dog->conversation.turns[0].parts.at(1).text, "What is this?");
  EXPECT_EQ(answer_of(*dog), "A dog.");
  EXPECT_EQ(answer_of(*source->read(2)), "A red car.") << "a mirror has its original's";
  EXPECT_EQ(source->read(3).error().code, Errc::kInvalidArgument);
  const auto german = open_records(folder.path(), {.caption_language = "de"});
  ASSERT_TRUE(german) << german.error().message;
  EXPECT_EQ((*german)->size(), 3);
}

TEST(CaptionFolder, NamesWhatIsWrong) {
  const Folder folder;
  folder.write("a.png", "x");
  EXPECT_THAT(CaptionFolder::open(folder.path()).error().message, AllOf(HasSubstr(folder.path()), HasSubstr("found 1 pictures, none with a caption")));
  folder.write("a.txt", "\xff");
  EXPECT_EQ(CaptionFolder::open(folder.path()).error().code, Errc::kBadData);
  EXPECT_THAT(CaptionFolder::open(folder.path()).error().message, HasSubstr(folder / "a.txt"));
  EXPECT_EQ(CaptionFolder::open(folder / "nowhere").error().code, Errc::kIo);
}

TEST(CaptionFolder, ReadsTheInstalledStamps) {
  const std::string installed = "/usr/share/tuxpaint/stamps";
  if (!std::filesystem::exists(installed)) GTEST_SKIP() << "tuxpaint-stamps-default is not installed: run tools/setup";
  const auto source = CaptionFolder::open(installed);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ(source->size(), 796);
  for (std::int64_t i = 0; i < source->size(); i += 40) {
    const auto record = source->read(i);
    ASSERT_TRUE(record);
    const auto picture = record->pictures.at(0).load();
    ASSERT_TRUE(picture) << picture.error().message;
    EXPECT_GT(picture->width, 10);
    EXPECT_EQ(answer_of(*record).find('\n'), std::string::npos) << record->where;
  }
  EXPECT_GT(CaptionFolder::open(installed, {.caption_language = "de"})->size(), 500);
}

}  // namespace
}  // namespace qwen_vl
