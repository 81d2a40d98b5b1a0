#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <troupe/actors/payload.hpp>

namespace troupe {
namespace {

enum class Colour : std::uint8_t { kRed = 1, kBlue = 7 };

struct Inner {
  std::string name;
  std::vector<std::int32_t> numbers;
  static auto troupe_fields(auto& self) { return std::tie(self.name, self.numbers); }
  friend bool operator==(const Inner&, const Inner&) = default;
};

struct Outer {
  bool is_set = false;
  Colour colour = Colour::kRed;
  double value = 0;
  std::optional<Inner> maybe;
  std::vector<Inner> many;
  std::vector<std::vector<float>> ragged;
  std::vector<bool> flags;
  static auto troupe_fields(auto& self) { return std::tie(self.is_set, self.colour, self.value, self.maybe, self.many, self.ragged, self.flags); }
  friend bool operator==(const Outer&, const Outer&) = default;
};

struct Opaque {};

static_assert(WireType<Outer> && WireType<std::monostate> && !WireType<Opaque>);

template <class T>
std::vector<std::byte> bytes_of(const T& value) {
  WireWriter to;
  Payload<T>::write(to, value);
  return std::move(to.bytes());
}

template <class T>
T again(const T& value) {
  const auto bytes = bytes_of(value);
  WireReader from(bytes);
  T out = Payload<T>::read(from);
  from.finish();
  return out;
}

Outer sample() {
  return {true, Colour::kBlue, 2.5, Inner{"maybe", {1, -2}}, {{"", {}}, {"zwei", {3}}}, {{1.5F}, {}, {2, 3}}, {true, false, true}};
}

Errc error_of(std::span<const std::byte> bytes) {
  WireReader from(bytes);
  try {
    (void)Payload<Outer>::read(from);
    from.finish();
  } catch (const Exception& caught) {
    return caught.error().code;
  }
  return {};
}

TEST(Wire, ValuesComeBackAsTheyWere) {
  EXPECT_EQ(again(sample()), sample());
  EXPECT_EQ(again(Outer{}), Outer{});
  EXPECT_EQ(again(std::numeric_limits<std::int64_t>::min()), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(again(std::vector<std::monostate>(5)).size(), 5U);
}

// what CAF 0.17.6 itself can't carry (notes/caf.md 4)
TEST(Wire, FloatsKeepTheirBits) {
  for (const double value : {std::numeric_limits<double>::infinity(), -0.0, std::numeric_limits<double>::denorm_min(), std::nan("7")}) {
    EXPECT_EQ(std::bit_cast<std::uint64_t>(again(value)), std::bit_cast<std::uint64_t>(value));
  }
}

TEST(Wire, EveryCutIsFound) {
  const auto whole = bytes_of(sample());
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_EQ(error_of({whole.data(), size}), Errc::kBadData) << size;
  auto longer = whole;
  longer.push_back({});
  EXPECT_EQ(error_of(longer), Errc::kBadData);
}

// a size is held against what is there before memory is asked for
TEST(Wire, HugeCountsAreRefused) {
  WireWriter to;
  to.number(std::numeric_limits<std::uint64_t>::max() / 2);
  for (const bool is_text : {true, false}) {
    WireReader from(to.bytes());
    EXPECT_THROW(is_text ? (void)from.text() : (void)Payload<std::vector<double>>::read(from), Exception);
  }
  WireReader nothing(to.bytes());
  EXPECT_THROW((void)Payload<std::vector<std::monostate>>::read(nothing), Exception);
}

TEST(Wire, OtherTruthValuesAreRefused) {
  const std::byte two[] = {std::byte{2}};
  WireReader from(two);
  EXPECT_THROW((void)from.number<bool>(), Exception);
}

TEST(Wire, TensorsTravelBeside) {
  WireWriter to;
  int data = 7;
  to.tensor({&data, {transport::DType::kI32, {}}});
  EXPECT_TRUE(to.bytes().empty());
  WireReader from(to.bytes(), to.tensors());
  EXPECT_THROW(from.finish(), Exception);
  EXPECT_EQ(from.tensor().data, &data);
  from.finish();
  EXPECT_THROW((void)from.tensor(), Exception);
}

}  // namespace
}  // namespace troupe
