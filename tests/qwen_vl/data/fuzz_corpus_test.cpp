// The fuzzer's corpus, through the fuzzer's own function: none crashes, and each is what its name says.
#include <cstdint>
#include <filesystem>

#include <gtest/gtest.h>

#include "folder.hpp"
#include "record_index.hpp"
#include "records.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace qwen_vl {
namespace {

bool is_file_of_records(const std::string& bytes) {
  RecordIndex index("input");
  return index.feed(bytes).has_value() && index.finish().has_value();
}

TEST(FuzzCorpus, ReplaysWithoutAComplaint) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(JSONL_CORPUS)) {
    const std::string bytes = test::content_of(entry.path().string()), name = entry.path().filename().string();
    EXPECT_EQ(LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()), 0);
    const auto record = parse_record(bytes, name);
    const bool good = name.starts_with("good_file") ? is_file_of_records(bytes) : record.has_value();
    EXPECT_EQ(good, name.starts_with("good")) << name << (record ? "" : record.error().message);
    ++files;
  }
  EXPECT_GE(files, 20);
}

}  // namespace
}  // namespace qwen_vl
