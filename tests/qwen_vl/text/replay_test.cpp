// The fuzzer's corpus, through the fuzzer's own function: none crashes, and those named good* load.
#include "support.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace qwen_vl {
namespace {

TEST(FuzzCorpus, ReplaysWithoutAComplaint) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TEXT_CORPUS)) {
    const std::string bytes = test::read(entry.path().string()), name = entry.path().filename().string();
    EXPECT_EQ(LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()), 0);
    const auto tokenizer = Tokenizer::parse_json(bytes, name);
    EXPECT_EQ(tokenizer.has_value(), name.starts_with("good")) << (tokenizer ? name : tokenizer.error().message);
    ++files;
  }
  EXPECT_GE(files, 10);
}

}  // namespace
}  // namespace qwen_vl
