// WebDataset archives: ustar, GNU and pax names, samples, records, and archives that are broken.
#include "tar.hpp"

#include <algorithm>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "folder.hpp"

namespace qwen_vl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using test::Folder;
using troupe::Errc;

std::string octal(std::size_t value, std::size_t digits) {
  std::string out(digits, '0');
  for (auto at = out.rbegin(); at != out.rend(); ++at, value /= 8) *at = static_cast<char>('0' + value % 8);
  return out + '\0';
}

/// One member as ustar has it, with the checksum right.
std::string member(const std::string& name, const std::string& bytes, char type = '0', const std::string& prefix = "") {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  header.replace(100, 8, octal(0644, 7));
  header.replace(124, 12, octal(bytes.size(), 11));
  header.replace(148, 8, "        ");
  header[156] = type;
  header.replace(257, 8, std::string("ustar\0" "00", 8));
  header.replace(345, prefix.size(), prefix);
  std::size_t sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  header.replace(148, 7, octal(sum, 6));
  return header + bytes + std::string((512 - bytes.size() % 512) % 512, '\0');
}

const std::string kEnd(1024, '\0');

std::string pax(const std::string& key, const std::string& value) {
  const std::string rest = " " + key + "=" + value + "\n";
  std::size_t length = rest.size() + 2;
  while (std::to_string(length).size() + rest.size() != length) ++length;
  return std::to_string(length) + rest;
}

std::vector<std::string> names_in(const Folder& folder, const std::string& bytes) {
  auto tar = TarReader::open(folder.write("a.tar", bytes));
  std::vector<std::string> out;
  for (;;) {
    const auto next = tar->next();
    if (!next) {
      out.push_back(next.error().message);
      return out;
    }
    if (!*next) return out;
    out.push_back((*next)->name + "=" + *tar->read(**next));
  }
}

TEST(TarReader, ReadsUstarGnuAndPaxNames) {
  const Folder folder;
  const std::string name(150, 'n'), deep(120, 'd');
  EXPECT_THAT(names_in(folder, member("dir/", "", '5') + member("a.txt", "one") + member("b.txt", std::string(600, 'b'), '0', "pre/fix") + member("././@LongLink", name + '\0', 'L') +
                                   member(name.substr(0, 100), "long") + member("PaxHeader", pax("mtime", "1.5") + pax("path", deep + "/p.txt"), 'x') + member("cut", "pax") +
                                   member("global", pax("comment", "x"), 'g') + member("empty", "") + member("old", "v7", '\0') + kEnd),
              ::testing::ElementsAre("a.txt=one", "pre/fix/b.txt=" + std::string(600, 'b'), name + "=long", deep + "/p.txt=pax", "empty=", "old=v7"));
}

TEST(TarReader, ReadsAPaxSizeAndGnusBinarySize) {
  const Folder folder;
  std::string binary = member("b", "12345");
  binary.replace(124, 12, std::string("\x80\0\0\0\0\0\0\0\0\0\0\x05", 12));
  std::size_t sum = 0;
  for (std::size_t i = 0; i < 512; ++i) sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(binary[i]);
  binary.replace(148, 7, octal(sum, 6));
  EXPECT_THAT(names_in(folder, binary + kEnd), ::testing::ElementsAre("b=12345"));
  EXPECT_THAT(names_in(folder, member("h", pax("size", "3"), 'x') + member("c", "123") + kEnd), ::testing::ElementsAre("c=123"));
}

TEST(TarReader, ATarCutAnywhereSaysWhereAndAfterWhat) {
  const Folder folder;
  const std::string whole = member("first.txt", "1") + member("second.txt", std::string(700, '2')) + kEnd;
  EXPECT_THAT(names_in(folder, whole.substr(0, 1024 + 512 + 300)).back(), AllOf(HasSubstr("at byte 1024"), HasSubstr("'second.txt': expected 700 bytes, the archive holds 300")));
  EXPECT_THAT(names_in(folder, whole.substr(0, 1024 + 100)).back(), AllOf(HasSubstr("at byte 1024"), HasSubstr("after member 'first.txt'"), HasSubstr("cut short")));
  EXPECT_THAT(names_in(folder, whole.substr(0, 1024)).back(), HasSubstr("cut short"));
  EXPECT_THAT(names_in(folder, "").back(), HasSubstr("at byte 0"));
  EXPECT_EQ(names_in(folder, whole).size(), 2U);
}

TEST(TarReader, BrokenHeadersAreNamed) {
  const Folder folder;
  std::string flipped = member("first.txt", "1") + member("second.txt", "2") + kEnd;
  flipped[1024 + 3] ^= 1;
  EXPECT_THAT(names_in(folder, flipped).back(), AllOf(HasSubstr("at byte 1024"), HasSubstr("after member 'first.txt'"), HasSubstr("checksum")));
  EXPECT_THAT(names_in(folder, member("l", "", '2') + kEnd).back(), AllOf(HasSubstr("'l'"), HasSubstr("plain files only")));
  EXPECT_THAT(names_in(folder, member("h", "7 path", 'x') + member("c", "") + kEnd).back(), HasSubstr("pax"));
  EXPECT_THAT(names_in(folder, member("h", pax("size", "-3"), 'x') + member("c", "") + kEnd).back(), HasSubstr("pax"));
  EXPECT_THAT(names_in(folder, member("h", pax("path", "x"), 'x') + kEnd).back(), HasSubstr("announces a member"));
  EXPECT_THAT(names_in(folder, std::string(2000, 'x')).back(), HasSubstr("at byte 0"));
}

TEST(TarReader, AnyFlippedByteGivesNamesOrAnError) {
  const Folder folder;
  const std::string whole = member("h", pax("path", "a/b.txt"), 'x') + member("first", "1") + member("././@LongLink", "long.txt", 'L') + member("x", "2") + kEnd;
  std::mt19937 random(1);
  for (int i = 0; i < 400; ++i) {
    std::string broken = whole;
    broken[random() % broken.size()] = static_cast<char>(random());
    EXPECT_LE(names_in(folder, broken).size(), 3U);
  }
}

TEST(TarReader, ACompressedArchiveIsRefusedByName) {
  const Folder folder;
  EXPECT_THAT(TarReader::open(folder.write("a.tar", "\x1f\x8b\x08zzz")).error().message, AllOf(HasSubstr("a.tar"), HasSubstr("gzip")));
  EXPECT_EQ(TarReader::open(folder / "no.tar").error().code, Errc::kIo);
}

TEST(IndexSamples, GroupsByTheNameUpToItsFirstDot) {
  const Folder folder;
  auto tar = TarReader::open(folder.write("a.tar", member("s.v/001.jpg", "j") + member("s.v/001.seg.PNG", "p") + member("s.v/002.jpg", "k") + member("__meta__", "") + member("README", "") +
                                                       member("s.v/.hidden", "") + member("t/002.txt", "t") + kEnd));
  const auto samples = index_samples(*tar);
  ASSERT_TRUE(samples) << samples.error().message;
  ASSERT_EQ(samples->size(), 3U);
  EXPECT_EQ((*samples)[0].key, "s.v/001");
  EXPECT_EQ((*samples)[0].files[1].extension, "seg.png");
  EXPECT_EQ(*tar->read((*samples)[0].files[1].member), "p");
  EXPECT_EQ((*samples)[1].key, "s.v/002");
  EXPECT_EQ((*samples)[2].key, "t/002");
}

TEST(IndexSamples, RefusesAFileThatOccursTwiceAndAnArchiveWithoutSamples) {
  const Folder folder;
  EXPECT_THAT(TarRecords::open(folder.write("a.tar", member("a.jpg", "1") + member("a.jpg", "2") + kEnd)).error().message, AllOf(HasSubstr("at byte 1024"), HasSubstr("'a.jpg' occurs twice")));
  EXPECT_THAT(TarRecords::open(folder.write("a.tar", member("README", "1") + kEnd)).error().message, HasSubstr("found none"));
}

TEST(TarRecords, MakesRecordsOfConversationsAndCaptions) {
  const Folder folder;
  const std::string png = test::content_of(std::string(PICTURES_GOLDEN) + "/gradient.png");
  const std::string chat = R"({"id": "x", "image": "elsewhere/x.png", "conversations": [{"from": "human", "value": "<image>\n<image>\nWhich?"}, {"from": "gpt", "value": "Both."}]})";
  const auto path = folder.write("a.tar", member("1.json", chat) + member("1.10.png", "ten") + member("1.9.png", png) + member("2.png", png) + member("2.txt", "A gradient.\n") +
                                              member("2.json", R"({"width": 83})") + member("3.json", R"({"caption": "No picture."})") + member("4.png", png) + kEnd);
  const auto source = open_records(path, {.caption_prompt = "What is it?"});
  ASSERT_TRUE(source) << source.error().message;
  ASSERT_EQ((*source)->size(), 4);
  const auto first = (*source)->read(0);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->where, path + ": 1");
  ASSERT_EQ(first->pictures.size(), 2U);
  EXPECT_EQ(first->pictures[0].load()->width, 83);
  EXPECT_EQ(first->pictures[1].bytes, "ten");
  EXPECT_THAT(first->pictures[1].load().error().message, HasSubstr(path + ": 1.10.png"));
  const auto second = (*source)->read(1);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->conversation.turns.at(0).parts.at(1).text, "What is it?");
  EXPECT_EQ(second->conversation.turns.at(1).parts.at(0).text, "A gradient.");
  EXPECT_EQ(second->pictures.size(), 1U);
  EXPECT_EQ((*source)->read(2)->conversation.turns.at(1).parts.at(0).text, "No picture.");
  EXPECT_THAT((*source)->read(3).error().message, AllOf(HasSubstr(path + ": 4: expected"), HasSubstr(".png")));
}

TEST(TarRecords, NamesTheSampleThatIsWrong) {
  const Folder folder;
  const auto refused = [&](const std::string& members) { return (*open_records(folder.write("a.tar", members + kEnd)))->read(0).error(); };
  EXPECT_THAT(refused(member("k.json", "{")).message, AllOf(HasSubstr("a.tar: k: "), HasSubstr("no valid JSON")));
  EXPECT_THAT(refused(member("k.txt", "\xff") + member("k.png", "x")).message, HasSubstr("k.txt': is no UTF-8"));
  EXPECT_THAT(refused(member("k.txt", "t") + member("k.png", "")).message, HasSubstr("k.png' is empty"));
  const auto count = refused(member("k.json", R"({"messages": [{"role": "user", "content": "<image><image>"}]})") + member("k.png", "x"));
  EXPECT_EQ(count.code, Errc::kMismatch);
  EXPECT_THAT(count.message, HasSubstr("holds 2 (in turn 0, 0), the record lists 1"));
}

}  // namespace
}  // namespace qwen_vl
