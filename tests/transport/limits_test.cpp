// Sizes where 31 and 32 bits end: one after the other, at most 11 GiB at a time.
#include <cstring>

#include <gtest/gtest.h>

#include <sys/mman.h>

#include "tensors.hpp"

namespace troupe::transport::test {
namespace {

/// Plain pages: zeros that cost nothing until written.
struct Pages {
  explicit Pages(std::int64_t bytes) : size(static_cast<std::size_t>(bytes)) {
    data = static_cast<std::uint64_t*>(mmap(nullptr, size + 64, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  }
  ~Pages() { munmap(data, size + 64); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::size_t size;
  std::uint64_t* data;
};

TEST(Limits, MessagesPastTwoAndFourGiBArriveWhole) {  // G4: 2 GiB +- 1, 4 GiB +- 1, 5 GiB
  constexpr std::int64_t kGiB = 1LL << 30;
  for (const std::int64_t bytes : {2 * kGiB - 1, 2 * kGiB, 2 * kGiB + 1, 4 * kGiB - 1, 4 * kGiB, 4 * kGiB + 1, 5 * kGiB}) {
    const Context context = make_context();
    auto pair = or_throw(open_inproc(context, {.credit_bytes = kGiB}));
    Pages source(bytes), target(bytes);
    ASSERT_NE(source.data, MAP_FAILED);
    const auto words = static_cast<std::size_t>(bytes / 8);
    for (std::size_t i = 0; i < words; ++i) source.data[i] = i * 0x9e3779b97f4a7c15ULL;
    const TensorDesc desc{DType::kU8, {bytes}, {}, {}};
    Operation sent = pair.sender->send({{}, {{source.data, desc, nullptr, nullptr}}}, context.clock->after(std::chrono::minutes(2)));
    auto incoming = pair.receiver->receive(soon(context));
    ASSERT_TRUE(incoming);
    const auto received = std::move(*incoming).accept({{target.data, desc, nullptr, nullptr}}, context.clock->after(std::chrono::minutes(2))).wait();
    ASSERT_TRUE(received) << received.error().describe();
    EXPECT_EQ(received->bytes, bytes);
    EXPECT_TRUE(sent.wait());
    EXPECT_EQ(std::memcmp(source.data, target.data, static_cast<std::size_t>(bytes)), 0) << bytes;
  }
}

}  // namespace
}  // namespace troupe::transport::test
