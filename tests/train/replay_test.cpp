// The fuzzer's corpus, through the fuzzer's own function (tools/fuzz): none crashes, and those named good_* are read.
#include <gtest/gtest.h>

#include <troupe/train/safetensors_header.hpp>

#include "files.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace troupe {
namespace {

TEST(FuzzCorpus, ReplaysWithoutAComplaint) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TROUPE_CORPUS)) {
    const std::string bytes = content_of(entry.path().string()), name = entry.path().filename().string();
    EXPECT_EQ(LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()), 0);
    const bool is_read = parse_safetensors_header(bytes, std::ssize(bytes), name).has_value() || parse_weight_map(bytes, name).has_value();
    EXPECT_EQ(is_read, name.starts_with("good")) << name;
    ++files;
  }
  EXPECT_GE(files, 15);
}

}  // namespace
}  // namespace troupe
