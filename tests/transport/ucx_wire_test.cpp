// What comes from a UCX peer: read back as written, or refused; and the fuzzer's corpus through its own function.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "tensors.hpp"
#include "ucx/wire.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace troupe::transport::ucx {
namespace {

Announcement sample() {
  Announcement out;
  out.tensors = {{DType::kF32, {2, 3}}, {DType::kBool, {}}, {DType::kBf16, {4, 0}}};
  out.alone = {0, 0, 0};
  out.meta = {std::byte{1}, std::byte{2}};
  out.is_inline = true;
  out.packed.resize(static_cast<std::size_t>(packing_of(out.tensors, out.alone).bytes));
  return out;
}

TEST(UcxWire, AnAnnouncementComesBackAsItWas) {
  const auto bytes = write(sample());
  const auto again = read_announcement(bytes);
  ASSERT_TRUE(again) << again.error().describe();
  EXPECT_EQ(again->tensors, sample().tensors);
  EXPECT_EQ(again->meta, sample().meta);
  EXPECT_EQ(write(*again), bytes);
}

// TRN-3: each tensor of the packed part begins on 64 bytes
TEST(UcxWire, PackedTensorsAreAligned) {
  const auto packing = packing_of({{DType::kU8, {3}}, {DType::kU8, {100}}, {DType::kF64, {8}}, {DType::kU8, {1}}}, {0, 1, 0, 0});
  EXPECT_EQ(packing.offsets, (std::vector<std::int64_t>{0, -1, 64, 128}));
  EXPECT_EQ(packing.bytes, 129);
}

TEST(UcxWire, EveryCutIsFound) {
  const auto whole = write(sample());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto read = read_announcement(std::span(whole).first(size));
    ASSERT_FALSE(read) << size;
    EXPECT_EQ(read.error().code, Errc::kBadData);
  }
  auto longer = whole;
  longer.push_back({});
  EXPECT_FALSE(read_announcement(longer));
}

TEST(UcxWire, ShapesThatCannotBeAreRefused) {
  for (const std::int64_t size : {std::int64_t{-1}, std::int64_t{1} << 62}) {
    Announcement broken = sample();
    broken.tensors[0].shape = {2, size};
    broken.is_inline = false;
    broken.packed.clear();
    EXPECT_FALSE(read_announcement(write(broken))) << size;
  }
  Announcement disagrees = sample();
  disagrees.packed.pop_back();
  EXPECT_EQ(read_announcement(write(disagrees)).error().code, Errc::kBadData);
}

TEST(UcxWire, OtherVersionsAreNamed) {
  Head head;
  head.version = 7;
  const auto other = read_head(std::as_bytes(std::span(&head, 1)));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Errc::kMismatch);
  head = {};
  head.magic = 1;
  EXPECT_EQ(read_head(std::as_bytes(std::span(&head, 1))).error().code, Errc::kBadData);
}

TEST(UcxWire, TheCorpusIsRead) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(UCX_WIRE_CORPUS)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    ++count;
  }
  EXPECT_GE(count, 6);
}

}  // namespace
}  // namespace troupe::transport::ucx
