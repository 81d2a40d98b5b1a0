#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <troupe/train/tensor_folder.hpp>

#include "files.hpp"
#include "golden.hpp"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

const std::string kGolden = TROUPE_GOLDEN_FILES;

std::vector<std::string> entries(const TemporaryFolder& folder) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) out.push_back(entry.path().filename().string());
  return out;
}

void expect_refused(const std::string& folder, Errc code, std::initializer_list<const char*> says) {
  const auto files = TensorFolder::open(folder);
  ASSERT_FALSE(files);
  EXPECT_EQ(files.error().code, code);
  for (const char* part : says) EXPECT_THAT(files.error().describe(), HasSubstr(part));
}

/// A folder of two shards: a and b, c.
void put_two_shards(const TemporaryFolder& folder, const std::string& weight_map) {
  ASSERT_TRUE(write_safetensors(folder / "one.safetensors", {{"a", at::zeros({2})}, {"b", at::ones({3})}}));
  ASSERT_TRUE(write_safetensors(folder / "two.safetensors", {{"c", at::ones({2, 2})}}));
  put(folder / "model.safetensors.index.json", R"({"weight_map":)" + weight_map + "}");
}

TEST(TensorFolder, ReadsShardsAsTheOriginalWroteThem) {
  const auto files = TensorFolder::open(kGolden + "/sharded");
  ASSERT_TRUE(files) << files.error().describe();
  EXPECT_THAT((*files)->names(), ElementsAre("embed.weight", "layers.0.weight", "layers.1.weight", "norm"));
  EXPECT_TRUE(same_bits(or_throw((*files)->read("layers.1.weight", {})), golden_value({4, 8}, at::kHalf)));
  const Share ranges[] = {{1, 2}};
  EXPECT_TRUE(same_bits(or_throw((*files)->read("embed.weight", {1, ranges})), golden_value({6, 4}, at::kFloat).narrow(1, 1, 2)));
  EXPECT_EQ((*files)->bytes_read(), 4 * 8 * 2 + 6 * 2 * 4);
  EXPECT_THAT(or_throw((*files)->describe("norm")).shape, ElementsAre(4));
}

TEST(TensorFolder, NamesWhatIsMissingOrHasAnotherShape) {
  const auto files = or_throw(TensorFolder::open(kGolden + "/sharded"));
  const std::int64_t shape[] = {4, 4};
  const auto wrong = files->expect("embed.weight", shape);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Errc::kMismatch);
  EXPECT_THAT(wrong.error().message, AllOf(HasSubstr("'embed.weight' must be [4, 4]"), HasSubstr("got [6, 4]")));
  for (const auto& missing : {files->expect("head", shape), Result<void>(files->read("head", {}).map([](const at::Tensor&) {}))}) {
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, Errc::kMismatch);
    EXPECT_THAT(missing.error().message, HasSubstr("there is no tensor 'head'"));
  }
}

TEST(TensorFolder, AFolderWithoutACheckpointIsRefused) {
  const TemporaryFolder folder;
  expect_refused(folder.path(), Errc::kIo, {"neither model.safetensors nor model.safetensors.index.json"});
  expect_refused(folder / "none", Errc::kIo, {"none", "neither"});
}

TEST(TensorFolder, TwoCheckpointsInOneFolderAreRefused) {
  const TemporaryFolder folder;
  put_two_shards(folder, R"({"a":"one.safetensors","b":"one.safetensors","c":"two.safetensors"})");
  ASSERT_TRUE(TensorFolder::open(folder.path()));
  ASSERT_TRUE(write_safetensors(folder / "model.safetensors", {{"a", at::zeros({2})}}));
  expect_refused(folder.path(), Errc::kBadData, {"has model.safetensors and model.safetensors.index.json"});
}

TEST(TensorFolder, AnIndexThatDoesNotFitItsShardsIsRefused) {
  const TemporaryFolder folder;
  put_two_shards(folder, R"({"a":"one.safetensors","b":"one.safetensors","c":"three.safetensors"})");
  expect_refused(folder.path(), Errc::kIo, {"index.json: its shard three.safetensors", "No such file"});
  put_two_shards(folder, R"({"a":"one.safetensors","b":"one.safetensors","c":"two.safetensors","d":"two.safetensors"})");
  expect_refused(folder.path(), Errc::kBadData, {"tensor 'd' must be in two.safetensors, which does not have it"});
  put_two_shards(folder, R"({"a":"one.safetensors","c":"two.safetensors"})");
  expect_refused(folder.path(), Errc::kBadData, {"leaves out tensor 'b', which is in one.safetensors"});
  ASSERT_TRUE(write_safetensors(folder / "two.safetensors", {{"b", at::ones({1})}, {"c", at::ones({1})}}));
  put(folder / "model.safetensors.index.json", R"({"weight_map":{"a":"one.safetensors","b":"one.safetensors","c":"two.safetensors"}})");
  expect_refused(folder.path(), Errc::kBadData, {"tensor 'b' is in one.safetensors and in two.safetensors, too"});
}

TEST(TensorFolder, ABrokenShardIsNamedWithItsFault) {
  const TemporaryFolder folder;
  put_two_shards(folder, R"({"a":"one.safetensors","b":"one.safetensors","c":"two.safetensors"})");
  std::filesystem::resize_file(folder / "two.safetensors", 90);
  expect_refused(folder.path(), Errc::kBadData, {"its shard two.safetensors can't be used", "cut short"});
}

TEST(TensorFolderWriter, CutsAtTheLimitAsTransformersDoes) {
  const TemporaryFolder folder;
  const std::map<std::string, at::Tensor> tensors = {{"a", at::full({10}, 1.0)}, {"b", at::full({10}, 2.0)}, {"c", at::full({100}, 3.0)}, {"d", at::full({1}, 4.0)}};
  ASSERT_TRUE(write_tensor_folder(folder.path(), tensors, {.max_shard_bytes = 80}));
  EXPECT_THAT(entries(folder), UnorderedElementsAre("model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors", "model-00003-of-00003.safetensors", "model.safetensors.index.json"));
  EXPECT_THAT(content_of(folder / "model.safetensors.index.json"), AllOf(HasSubstr("\"total_size\": 484"), HasSubstr("\"c\": \"model-00002-of-00003.safetensors\"")));
  const auto files = TensorFolder::open(folder.path());
  ASSERT_TRUE(files) << files.error().describe();
  for (const auto& [name, value] : tensors) EXPECT_TRUE(at::equal(or_throw((*files)->read(name, {})), value)) << name;
}

TEST(TensorFolderWriter, ReplacesAnEarlierCheckpointAndKeepsOtherFiles) {
  const TemporaryFolder folder;
  put(folder / "config.json", "{}");
  put(folder / "model-00001-of-00002.safetensors.bak", "");
  const std::map<std::string, at::Tensor> tensors = {{"a", at::ones({10})}, {"b", at::ones({10})}, {"c", at::ones({10})}};
  const auto write = [&](std::int64_t limit) {
    ASSERT_TRUE(write_tensor_folder(folder.path(), tensors, {.max_shard_bytes = limit}));
    const auto files = TensorFolder::open(folder.path());
    ASSERT_TRUE(files) << files.error().describe();
    EXPECT_EQ((*files)->names().size(), 3U);
  };
  write(40);
  EXPECT_EQ(folder.count(), 2 + 3 + 1);
  write(1000);
  EXPECT_THAT(entries(folder), UnorderedElementsAre("config.json", "model-00001-of-00002.safetensors.bak", "model.safetensors"));
  write(80);
  EXPECT_THAT(entries(folder), UnorderedElementsAre("config.json", "model-00001-of-00002.safetensors.bak", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                                                    "model.safetensors.index.json"));
}

TEST(TensorFolderWriter, AnUnfinishedOneLeavesTheOldCheckpoint) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_tensor_folder(folder.path(), {{"a", at::zeros({2})}, {"b", at::zeros({2})}}, {.max_shard_bytes = 8}));
  {
    auto writer = TensorFolderWriter::create(folder.path(), {{"a", {at::kFloat, {2}}}, {"b", {at::kFloat, {2}}}}, {.max_shard_bytes = 8});
    ASSERT_TRUE(writer) << writer.error().describe();
    ASSERT_TRUE(writer->write("b", at::ones({2})));
    const auto undeclared = writer->write("c", at::ones({2}));
    ASSERT_FALSE(undeclared);
    EXPECT_EQ(undeclared.error().code, Errc::kMismatch);
    const auto finished = writer->finish();
    ASSERT_FALSE(finished);
    EXPECT_EQ(finished.error().code, Errc::kMismatch);
    EXPECT_THAT(finished.error().message, HasSubstr("the first is 'a'"));
  }
  EXPECT_EQ(folder.count(), 3);
  const auto files = TensorFolder::open(folder.path());
  ASSERT_TRUE(files) << files.error().describe();
  EXPECT_TRUE(at::equal(or_throw((*files)->read("b", {})), at::zeros({2})));
}

}  // namespace
}  // namespace troupe
