// preprocessor_config.json and its relatives.
#include "processor_config.hpp"

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>

#include <stdlib.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qwen_vl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// A folder of its own with some files, gone afterwards.
class Folder {
 public:
  explicit Folder(std::initializer_list<std::pair<const char*, const char*>> files) {
    std::string name = (std::filesystem::temp_directory_path() / "qwen-pictures-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("can't make " + name);
    path_ = name;
    for (const auto& [file, content] : files) std::ofstream(path_ / file) << content;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

TEST(ProcessorConfig, ReadsBothFormsOfBounds) {
  EXPECT_EQ(parse_processor_config(R"({"min_pixels": 10, "max_pixels": 20})", "f")->max_pixels, 20);
  EXPECT_EQ(parse_processor_config(R"({"size": {"shortest_edge": 11, "longest_edge": 22}, "patch_size": 4})", "f")->min_pixels, 11);
  EXPECT_EQ(parse_processor_config(R"({"size": {"shortest_edge": 11, "longest_edge": 22}, "max_pixels": 33})", "f")->max_pixels, 33);
}

TEST(ProcessorConfig, AFileWithoutBoundsHasTransformersOwn) {
  EXPECT_EQ(parse_processor_config("{}", "f")->max_pixels, 1003520);
  EXPECT_EQ(parse_processor_config("{}", "f", ProcessorKind::kVideo)->min_pixels, 100352);
  EXPECT_EQ(parse_processor_config("{}", "f", ProcessorKind::kVideo)->max_pixels, 602112);
  EXPECT_EQ(ProcessorConfig{}.max_pixels, 12845056);
}

TEST(ProcessorConfig, RefusesNonsenseByFileAndKey) {
  const auto refused = [](const char* json, const char* because) {
    const auto got = parse_processor_config(json, "d/preprocessor_config.json");
    ASSERT_FALSE(got) << json;
    EXPECT_THAT(got.error().message, AllOf(StartsWith("d/preprocessor_config.json: "), HasSubstr(because)));
  };
  refused("[]", "expected a JSON object");
  refused("{", "expected a JSON object");
  refused(R"({"patch_size": "x"})", "'patch_size' must be a whole number from 1 to 1024, got \"x\"");
  refused(R"({"patch_size": 0})", "got 0");
  refused(R"({"patch_size": 14.5})", "got 14.5");
  refused(R"({"merge_size": 18446744073709551615})", "'merge_size'");
  refused(R"({"image_mean": [1, 2]})", "'image_mean' must be three numbers, got an array of 2");
  refused(R"({"image_std": [1, 0, 1]})", "'image_std' must be > 0");
  refused(R"({"min_pixels": 9, "max_pixels": 8})", "min_pixels 9 is above max_pixels 8");
  refused(R"({"size": {"shortest_edge": "a"}})", "'shortest_edge'");
  refused(R"({"size": {"height": 224, "width": 224}})", "'height'");
  refused(R"({"size": 224})", "'size' must be an object");
  refused(R"({"do_resize": false})", "'do_resize' is false");
  refused(R"({"do_center_crop": true})", "'do_center_crop' is true");
  refused(R"({"resample": 2})", "'resample' is 2");
  refused(R"({"rescale_factor": 1})", "only 1/255");
}

// What transformers 5.24's save_pretrained writes.
TEST(ProcessorConfig, ReadsWhatTransformersWrites) {
  const auto got = parse_processor_config(R"({"do_convert_rgb": true, "do_normalize": true, "do_rescale": true, "do_resize": true, "image_mean": [0.5, 0.25, 0.125],
    "image_processor_type": "Qwen2VLImageProcessor", "image_std": [0.5, 1, 2], "merge_size": 3, "patch_size": 16, "resample": 3, "rescale_factor": 0.00392156862745098,
    "size": {"longest_edge": 1003520, "shortest_edge": 3136}, "temporal_patch_size": 1, "do_pad": false, "data_format": "channels_first"})", "f");
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(*got, (ProcessorConfig{.patch = 16, .temporal_patch = 1, .merge = 3, .max_pixels = 1003520, .mean = {0.5, 0.25, 0.125}, .deviation = {0.5, 1, 2}}));
}

TEST(ProcessorConfig, WritesWhatItReads) {
  const ProcessorConfig config{.patch = 4, .temporal_patch = 1, .merge = 1, .min_pixels = 5, .max_pixels = 77, .mean = {0.1, 0.2, 0.3}};
  EXPECT_EQ(parse_processor_config(processor_config_json(config), "f").value(), config);
}

TEST(ReadProcessorConfig, TakesTheNestedFormFirstAndFallsBackForVideos) {
  const Folder both({{"processor_config.json", R"({"image_processor": {"patch_size": 5}})"}, {"preprocessor_config.json", R"({"patch_size": 6})"}});
  EXPECT_EQ(read_processor_config(both.path())->patch, 5);
  EXPECT_EQ(read_video_processor_config(both.path())->patch, 6);
  const Folder flat({{"processor_config.json", R"({"processor_class": "x"})"}, {"preprocessor_config.json", R"({"patch_size": 6})"}, {"video_preprocessor_config.json", R"({"patch_size": 7})"}});
  EXPECT_EQ(read_processor_config(flat.path())->patch, 6);
  EXPECT_EQ(read_video_processor_config(flat.path())->patch, 7);
}

TEST(ReadProcessorConfig, NamesWhatIsMissingOrBroken) {
  const Folder none({});
  EXPECT_EQ(read_processor_config(none.path()).error().code, troupe::Errc::kIo);
  EXPECT_THAT(read_processor_config(none.path()).error().message, HasSubstr("preprocessor_config.json"));
  const Folder broken({{"processor_config.json", R"({"image_processor": {"merge_size": -1}})"}});
  EXPECT_THAT(read_processor_config(broken.path()).error().message, AllOf(HasSubstr("/processor_config.json, image_processor: "), HasSubstr("'merge_size'")));
}

}  // namespace
}  // namespace qwen_vl
