#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "grid.hpp"
#include "tiny.hpp"

namespace qwen_vl {
namespace {

using ::testing::ElementsAre;

// notes 3.2: [T T <vs> I(2x2 merged) <ve> T], on time, rows and columns.
TEST(RopePositions, WorkedExample) {
  const std::vector<TokenRun> runs = {{.length = 3}, {.length = 4, .grid = {1, 4, 4}}, {.length = 2}};
  EXPECT_THAT(rope_positions(runs, tiny_config()), ElementsAre(0, 1, 2, 3, 3, 3, 3, 5, 6,   //
                                                               0, 1, 2, 3, 3, 4, 4, 5, 6,   //
                                                               0, 1, 2, 3, 4, 3, 4, 5, 6));
}

// 2 steps a second, 0.75 s per grid step: k x 1.5 cut to whole numbers; 4.x cuts the seconds first and goes on after the latest.
TEST(RopePositions, VideosOfBothVersions) {
  const std::vector<TokenRun> runs = {{.length = 3, .grid = {3, 2, 2}, .is_video = true, .seconds = 1.75}, {.length = 1}};
  EXPECT_THAT(rope_positions(runs, tiny_config()), ElementsAre(0, 3, 7, 1, 0, 0, 0, 1, 0, 0, 0, 1));
  EXPECT_THAT(rope_positions(runs, tiny_config(), VideoPositions::kTransformers4), ElementsAre(0, 2, 4, 5, 0, 0, 0, 5, 0, 0, 0, 5));
}

// 3 x 5 units in windows of 2 x 2: the right and bottom windows are smaller.
TEST(Windows, EdgesAreSmaller) {
  const Windows windows = windows_of({1, 6, 10}, tiny_config().vision);
  EXPECT_THAT(windows.units, ElementsAre(0, 1, 5, 6, 2, 3, 7, 8, 4, 9, 10, 11, 12, 13, 14));
  EXPECT_THAT(windows.sizes, ElementsAre(4, 4, 2, 2, 2, 1));
}

TEST(Windows, FollowEachOtherFrameByFrame) {
  const Windows windows = windows_of({2, 4, 4}, tiny_config().vision);
  EXPECT_THAT(windows.units, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(windows.frames, ElementsAre(0, 1));
}

}  // namespace
}  // namespace qwen_vl
