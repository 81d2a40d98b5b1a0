// Windows and M-RoPE positions against tables made by transformers (tests/golden/qwen_vl/tables.json).
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "grid.hpp"
#include "tiny.hpp"

namespace qwen_vl {
namespace {

using nlohmann::json;

json tables() {
  std::ifstream file(QWEN_VL_GOLDEN "/tables.json");
  return json::parse(file);
}

TEST(Tables, WindowsOfManyGrids) {
  const json all = tables();
  ASSERT_GE(all.at("windows").size(), 20U);
  for (const json& row : all.at("windows")) {
    VisionConfig config;
    config.window = row.at("window_size");
    config.patch = row.at("patch_size");
    config.merge = row.at("merge");
    std::vector<std::int64_t> units, ends = {0};
    for (const json& grid : row.at("grids")) {
      const auto before = static_cast<std::int64_t>(units.size());
      const Windows windows = windows_of({grid[0], grid[1], grid[2]}, config);
      for (const std::int64_t unit : windows.units) units.push_back(before + unit);
      for (const std::int64_t size : windows.sizes) ends.push_back(ends.back() + size * config.merge_unit());
    }
    EXPECT_EQ(units, row.at("window_index").get<std::vector<std::int64_t>>()) << row.dump();
    EXPECT_EQ(ends, row.at("cu_window_seqlens").get<std::vector<std::int64_t>>()) << row.dump();
  }
}

// case 7: three axes, also through padding, videos of odd length and seconds in fp32 and fp64.
TEST(Tables, PositionsOfManySequences) {
  const json all = tables();
  ASSERT_GE(all.at("positions").size(), 14U);
  for (const json& row : all.at("positions")) {
    SCOPED_TRACE(row.at("name").get<std::string>());
    ModelConfig config = tiny_config();
    config.tokens_per_second = row.at("tokens_per_second");
    config.vision.merge = row.at("merge");
    config.tokens = {.image = row.at("image_token_id"), .video = row.at("video_token_id")};
    config.language.vocabulary = 1 << 20;
    RawBatch raw;
    const auto ids = row.at("input_ids").get<std::vector<std::vector<std::int64_t>>>();
    const auto tensor = [](const std::vector<std::vector<std::int64_t>>& rows) {
      std::vector<at::Tensor> out;
      for (const auto& one : rows) out.push_back(at::tensor(one, at::kLong));
      return at::stack(out);
    };
    raw.input_ids = tensor(ids);
    raw.labels = at::full_like(raw.input_ids, -100);
    if (!row.at("attention_mask").is_null()) raw.attention_mask = tensor(row.at("attention_mask").get<std::vector<std::vector<std::int64_t>>>());
    std::int64_t images = 0, videos = 0;
    for (const json& grid : row.at("image_grid_thw")) images += raw.images.emplace_back(Grid{grid[0], grid[1], grid[2]}).patches();
    for (const json& grid : row.at("video_grid_thw")) videos += raw.videos.emplace_back(Grid{grid[0], grid[1], grid[2]}).patches();
    raw.pixel_values = at::zeros({images, config.vision.patch_values()});
    raw.pixel_values_videos = at::zeros({videos, config.vision.patch_values()});
    if (!row.at("second_per_grid_ts").is_null()) raw.seconds = row.at("second_per_grid_ts").get<std::vector<double>>();
    raw.single_seconds = row.at("seconds_dtype") == "float32";
    const auto got = assemble(raw, config);
    ASSERT_TRUE(got) << got.error().message;
    const json& expected = row.at("position_ids");
    for (std::size_t axis = 0; axis < 3; ++axis) {
      for (std::size_t sample = 0; sample < ids.size(); ++sample) {
        const at::Tensor line = got->batch.text.positions[static_cast<std::int64_t>(sample)][static_cast<std::int64_t>(axis)].contiguous();
        const std::vector<std::int64_t> values(line.const_data_ptr<std::int64_t>(), line.const_data_ptr<std::int64_t>() + line.numel());
        EXPECT_EQ(values, expected[axis][sample].get<std::vector<std::int64_t>>()) << "axis " << axis << ", sample " << sample;
      }
    }
  }
}

}  // namespace
}  // namespace qwen_vl
