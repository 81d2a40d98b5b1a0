#include <atomic>
#include <csignal>
#include <thread>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <troupe/torch/budget.hpp>
#include <troupe/train/safetensors.hpp>

#include "files.hpp"
#include "golden.hpp"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

const std::string kGolden = TROUPE_GOLDEN_FILES;

/// A file with the tensor "w".
std::shared_ptr<const SafetensorsFile> file_of(const TemporaryFolder& folder, const at::Tensor& tensor) {
  EXPECT_TRUE(write_safetensors(folder / "w.safetensors", {{"w", tensor}}));
  return or_throw(SafetensorsFile::open(folder / "w.safetensors"));
}

TEST(SafetensorsFile, ReadsEveryDtypeAsTheOriginalWroteIt) {
  const auto file = SafetensorsFile::open(kGolden + "/types.safetensors");
  ASSERT_TRUE(file) << file.error().describe();
  const auto wanted = golden_tensors();
  EXPECT_EQ((*file)->header().tensors.size(), wanted.size());
  for (const auto& [name, value] : wanted) {
    const auto got = (*file)->read(name);
    ASSERT_TRUE(got) << got.error().describe();
    EXPECT_TRUE(same_bits(*got, value)) << name << *got;
  }
}

TEST(SafetensorsFile, KnowsItsMetadata) {
  const auto file = SafetensorsFile::open(kGolden + "/metadata.safetensors");
  ASSERT_TRUE(file) << file.error().describe();
  EXPECT_THAT((*file)->header().metadata, ElementsAre(Pair("format", "pt"), Pair("note", "a \"quoted\" é line\n")));
}

TEST(SafetensorsFile, ReadsNoDataUntilAskedAndThenOnlyTheRanges) {
  const TemporaryFolder folder;
  const at::Tensor w = at::arange(3 * 8 * 200, at::kInt).reshape({3, 8, 200});
  const auto file = file_of(folder, w);
  EXPECT_EQ(file->bytes_read(), 0);
  const Share ranges[] = {{1, 2}, {5, 3}};
  const auto part = file->read("w", {1, ranges});
  ASSERT_TRUE(part) << part.error().describe();
  EXPECT_TRUE(at::equal(*part, at::cat({w.narrow(1, 1, 2), w.narrow(1, 5, 3)}, 1)));
  EXPECT_EQ(file->bytes_read(), 3 * 5 * 200 * 4);
  EXPECT_EQ(file->bytes_fetched(), 3 * 5 * 200 * 4);
  ASSERT_TRUE(file->read("w"));
  EXPECT_EQ(file->bytes_read(), (3 * 5 + 3 * 8) * 200 * 4);
}

TEST(SafetensorsFile, SmallPiecesCloseTogetherAreFetchedInRuns) {
  const TemporaryFolder folder;
  const at::Tensor w = at::arange(1000 * 64, at::kInt).reshape({1000, 64});
  const auto file = file_of(folder, w);
  const Share ranges[] = {{16, 16}};
  const auto part = file->read("w", {1, ranges});
  ASSERT_TRUE(part) << part.error().describe();
  EXPECT_TRUE(at::equal(*part, w.narrow(1, 16, 16)));
  EXPECT_EQ(file->bytes_read(), 1000 * 16 * 4);
  // gaps of 192 bytes come along, those before the first and after the last piece do not
  EXPECT_EQ(file->bytes_fetched(), 1000 * 64 * 4 - 48 * 4);
}

TEST(SafetensorsFile, RangesMayRepeatOverlapAndGoBack) {
  const TemporaryFolder folder;
  const at::Tensor w = at::arange(4 * 6 * 3, at::kShort).reshape({4, 6, 3});
  const auto file = file_of(folder, w);
  const Share ranges[] = {{4, 2}, {0, 3}, {2, 2}, {3, 0}, {4, 1}};
  const auto part = file->read("w", {1, ranges});
  ASSERT_TRUE(part) << part.error().describe();
  EXPECT_TRUE(at::equal(*part, at::cat({w.narrow(1, 4, 2), w.narrow(1, 0, 3), w.narrow(1, 2, 2), w.narrow(1, 4, 1)}, 1)));
}

TEST(SafetensorsFile, NoRangesMakeAnEmptyPart) {
  const TemporaryFolder folder;
  const auto file = file_of(folder, at::ones({4, 6}));
  const auto part = file->read("w", {1, {}});
  ASSERT_TRUE(part) << part.error().describe();
  EXPECT_THAT(part->sizes().vec(), ElementsAre(4, 0));
  EXPECT_EQ(file->bytes_read(), 0);
}

TEST(SafetensorsFile, PartsStartOn64Bytes) {  // TRN-3
  const TemporaryFolder folder;
  const auto file = file_of(folder, at::ones({64, 3}, at::kByte));
  for (std::int64_t begin = 0; begin < 64; ++begin) {
    const Share range[] = {{begin, 1}};
    const at::Tensor part = or_throw(file->read("w", {0, range}));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(part.const_data_ptr()) % 64, 0U);
  }
}

TEST(SafetensorsFile, APartPastTheTensorIsRefused) {
  const TemporaryFolder folder;
  const auto file = file_of(folder, at::ones({4, 6}));
  const auto refused = [&](int dim, std::vector<Share> ranges, const char* says) {
    const auto part = file->read("w", {dim, ranges});
    ASSERT_FALSE(part);
    EXPECT_EQ(part.error().code, Errc::kInvalidArgument);
    EXPECT_THAT(part.error().message, AllOf(HasSubstr("w.safetensors, tensor 'w'"), HasSubstr(says)));
  };
  refused(1, {{4, 3}}, "[4, 4 + 3) of dim 1, which has 6");
  refused(1, {{-1, 2}}, "of dim 1");
  refused(1, {{1, -1}}, "of dim 1");
  refused(0, {{std::numeric_limits<std::int64_t>::max(), 1}}, "of dim 0, which has 4");
  refused(2, {{0, 1}}, "dim 2, it has 2 dims");
  refused(-1, {{0, 1}}, "ranges without a dim");
  EXPECT_EQ(file->bytes_read(), 0);
}

TEST(SafetensorsFile, AMissingTensorAndAnotherShapeAreMismatches) {
  const TemporaryFolder folder;
  const auto file = file_of(folder, at::ones({4, 6}));
  const std::int64_t right[] = {4, 6}, wrong[] = {6, 4};
  EXPECT_TRUE(file->expect("w", right));
  const auto shape = file->expect("w", wrong);
  ASSERT_FALSE(shape);
  EXPECT_EQ(shape.error().code, Errc::kMismatch);
  EXPECT_THAT(shape.error().message, AllOf(HasSubstr("tensor 'w' must be [6, 4]"), HasSubstr("got [4, 6]")));
  const auto name = file->read("v");
  ASSERT_FALSE(name);
  EXPECT_EQ(name.error().code, Errc::kMismatch);
  EXPECT_THAT(name.error().message, HasSubstr("there is no tensor 'v'"));
}

TEST(SafetensorsFile, WhatIsNoFileIsRefused) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  put(folder / "empty", "");
  const std::pair<std::string, const char*> cases[] = {{folder / "none", "No such file"}, {folder.path(), "not a regular file"}, {folder / "pipe", "not a regular file"}};
  for (const auto& [path, says] : cases) {
    const auto file = SafetensorsFile::open(path);
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().code, Errc::kIo);
    EXPECT_THAT(file.error().message, AllOf(HasSubstr(path), HasSubstr(says)));
  }
  const auto empty = SafetensorsFile::open(folder / "empty");
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().code, Errc::kBadData);
}

TEST(SafetensorsFile, OneThatShrinksWhileOpenIsBadData) {
  const TemporaryFolder folder;
  const auto file = file_of(folder, at::ones({1000}));
  std::filesystem::resize_file(folder / "w.safetensors", 2000);
  const auto part = file->read("w");
  ASSERT_FALSE(part);
  EXPECT_EQ(part.error().code, Errc::kBadData);
  EXPECT_THAT(part.error().message, HasSubstr("ends at byte 2000"));
}

TEST(SafetensorsFile, ABoolIsZeroOrOne) {
  const TemporaryFolder folder;
  std::string content = stored(R"({"w":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}})", 3);
  content.back() = 2;
  put(folder / "w.safetensors", content);
  const auto file = SafetensorsFile::open(folder / "w.safetensors");
  ASSERT_TRUE(file);
  const auto part = (*file)->read("w");
  ASSERT_FALSE(part);
  EXPECT_EQ(part.error().code, Errc::kBadData);
  EXPECT_THAT(part.error().message, AllOf(HasSubstr("tensor 'w'"), HasSubstr("got 2")));
}

TEST(SafetensorsFile, APartPastTheRanksBudgetIsOutOfMemory) {  // RES-5
  const TemporaryFolder folder;
  const auto file = file_of(folder, at::ones({1000, 10}));
  const DeviceBudgets budgets;
  const auto account = budgets.account("rank 0", 10'100);
  const BudgetScope scope(account);
  const auto whole = file->read("w");
  ASSERT_FALSE(whole);
  EXPECT_EQ(whole.error().code, Errc::kOutOfMemory);
  EXPECT_THAT(whole.error().describe(), AllOf(HasSubstr("tensor 'w': no memory for [1000, 10] of Float"), HasSubstr("rank 0")));
  const Share quarter[] = {{250, 250}};
  const auto part = file->read("w", {0, quarter});
  ASSERT_TRUE(part) << part.error().describe();
  EXPECT_EQ(account->peak(), 10'000);  // the part itself, no temporary
}

TEST(SafetensorsFile, ReadsIntoAPlaceOfTheSameDtypeWithoutATemporary) {
  const TemporaryFolder folder;
  const at::Tensor w = at::arange(6000, at::kInt).reshape({60, 100});
  const auto file = file_of(folder, w);
  const Share range[] = {{10, 40}};
  const DeviceBudgets budgets;
  const auto account = budgets.account("rank 0", 0);
  const BudgetScope scope(account);
  const at::Tensor place = at::empty({60, 40}, at::kInt);
  const auto ok = file->read_into("w", {1, range}, place);
  ASSERT_TRUE(ok) << ok.error().describe();
  EXPECT_TRUE(at::equal(place, w.narrow(1, 10, 40)));
  EXPECT_EQ(account->peak(), 60 * 40 * 4);
  // another dtype, and another order in memory, go through one
  const at::Tensor wide = at::empty({60, 40}, at::kDouble), turned = at::empty({40, 60}, at::kInt).t();
  for (const at::Tensor& other : {wide, turned}) {
    ASSERT_TRUE(file->read_into("w", {1, range}, other));
    EXPECT_TRUE(at::equal(other.to(at::kInt), w.narrow(1, 10, 40)));
  }
  const auto wrong = file->read_into("w", {1, range}, at::empty({40, 60}, at::kInt));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Errc::kMismatch);
  EXPECT_THAT(wrong.error().message, AllOf(HasSubstr("tensor 'w': the part is [60, 40]"), HasSubstr("its place is [40, 60]")));
}

TEST(SafetensorsFile, ManyThreadsReadAtOnce) {
  const TemporaryFolder folder;
  const at::Tensor w = at::arange(64 * 1024, at::kLong).reshape({64, 1024});
  const auto file = file_of(folder, w);
  std::atomic<int> equal = 0;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 4; ++rank) {
    threads.emplace_back([&, rank] {
      for (int dim = 0; dim < 2; ++dim) {
        const Share range[] = {share_of(w.size(dim), 4, rank)};
        const auto part = file->read("w", {dim, range});
        equal += part && at::equal(*part, w.narrow(dim, range[0].begin, range[0].size)) ? 1 : 0;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(equal, 8);
  EXPECT_EQ(file->bytes_read(), 2 * 64 * 1024 * 8);
}

}  // namespace
}  // namespace troupe
