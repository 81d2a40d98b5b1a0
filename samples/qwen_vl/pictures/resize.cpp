#include "resize.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <troupe/base/text.hpp>

namespace qwen_vl {
namespace {

constexpr int kBits = 32 - 8 - 2;   // of fraction in a weight
constexpr std::int64_t kChannels = 3;

double bicubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

/// For each place of the output: which places of the input count, and how much.
struct Taps {
  struct Span {
    std::int64_t begin = 0;
    std::int64_t count = 0;
  };
  std::vector<Span> spans;
  std::vector<std::int32_t> weights;   ///< `widest` a place.
  std::int64_t widest = 0;
};

Taps taps_for(std::int64_t from, std::int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double filter_scale = std::max(scale, 1.0);
  const double support = 2.0 * filter_scale;
  Taps out;
  out.widest = static_cast<std::int64_t>(std::ceil(support)) * 2 + 1;
  out.weights.assign(static_cast<std::size_t>(to * out.widest), 0);
  std::vector<double> exact(static_cast<std::size_t>(out.widest));
  for (std::int64_t place = 0; place < to; ++place) {
    const double centre = (static_cast<double>(place) + 0.5) * scale;
    const std::int64_t begin = std::max<std::int64_t>(static_cast<std::int64_t>(centre - support + 0.5), 0);
    const std::int64_t end = std::min<std::int64_t>(static_cast<std::int64_t>(centre + support + 0.5), from);
    double sum = 0;
    for (std::int64_t i = 0; i < end - begin; ++i) {
      const double weight = bicubic((static_cast<double>(i + begin) - centre + 0.5) / filter_scale);
      exact[static_cast<std::size_t>(i)] = weight;
      sum += weight;
    }
    for (std::int64_t i = 0; i < end - begin; ++i) {
      const double weight = (sum != 0 ? exact[static_cast<std::size_t>(i)] / sum : exact[static_cast<std::size_t>(i)]) * (1 << kBits);
      out.weights[static_cast<std::size_t>(place * out.widest + i)] = static_cast<std::int32_t>(weight < 0 ? weight - 0.5 : weight + 0.5);
    }
    out.spans.push_back({begin, end - begin});
  }
  return out;
}

/// Weights of one place sum to about 1 and their sizes to less than 1.3, so that sums of bytes fit 32 bits.
std::uint8_t rounded(std::int32_t sum) { return static_cast<std::uint8_t>(std::clamp(sum >> kBits, 0, 255)); }

constexpr std::int32_t kHalf = std::int32_t{1} << (kBits - 1);

Picture resize_columns(const Picture& from, std::int64_t width) {
  const Taps taps = taps_for(from.width, width);
  Picture out{width, from.height, std::vector<std::uint8_t>(static_cast<std::size_t>(width * from.height * kChannels))};
  for (std::int64_t row = 0; row < from.height; ++row) {
    const std::uint8_t* in = from.rgb.data() + row * from.width * kChannels;
    std::uint8_t* to = out.rgb.data() + row * width * kChannels;
    for (std::int64_t place = 0; place < width; ++place) {
      const Taps::Span span = taps.spans[static_cast<std::size_t>(place)];
      const std::int32_t* weights = taps.weights.data() + place * taps.widest;
      const std::uint8_t* pixel = in + span.begin * kChannels;
      std::int32_t red = kHalf, green = kHalf, blue = kHalf;
      for (std::int64_t i = 0; i < span.count; ++i, pixel += kChannels) {
        red += pixel[0] * weights[i];
        green += pixel[1] * weights[i];
        blue += pixel[2] * weights[i];
      }
      to[place * kChannels] = rounded(red);
      to[place * kChannels + 1] = rounded(green);
      to[place * kChannels + 2] = rounded(blue);
    }
  }
  return out;
}

Picture resize_rows(const Picture& from, std::int64_t height) {
  const Taps taps = taps_for(from.height, height);
  const std::int64_t line = from.width * kChannels;
  Picture out{from.width, height, std::vector<std::uint8_t>(static_cast<std::size_t>(height * line))};
  std::vector<std::int32_t> sums(static_cast<std::size_t>(line));
  for (std::int64_t place = 0; place < height; ++place) {
    const Taps::Span span = taps.spans[static_cast<std::size_t>(place)];
    std::ranges::fill(sums, kHalf);
    for (std::int64_t i = 0; i < span.count; ++i) {
      const std::uint8_t* in = from.rgb.data() + (span.begin + i) * line;
      const std::int32_t weight = taps.weights[static_cast<std::size_t>(place * taps.widest + i)];
      std::int32_t* const sum = sums.data();
      for (std::int64_t x = 0; x < line; ++x) sum[x] += in[x] * weight;
    }
    std::ranges::transform(sums, out.rgb.begin() + place * line, rounded);
  }
  return out;
}

/// Python's round: halves to even.
std::int64_t round_to(std::int64_t value, std::int64_t factor) {
  const std::int64_t low = value / factor;
  const std::int64_t twice = 2 * (value % factor);
  const bool up = twice > factor || (twice == factor && low % 2 == 1);
  return (low + (up ? 1 : 0)) * factor;
}

}  // namespace

troupe::Result<Size> smart_resize(Size size, const SmartResizeOptions& options) {
  const auto wrong = [](auto... parts) { return troupe::fail(troupe::Errc::kBadData, troupe::text(parts...)); };
  if (size.height < 1 || size.width < 1) return wrong("a picture of ", size.width, " x ", size.height, " pixels can't be resized");
  const auto height = static_cast<double>(size.height);
  const auto width = static_cast<double>(size.width);
  const double aspect = std::max(height, width) / std::min(height, width);
  if (aspect > 200) return wrong("a picture of ", size.width, " x ", size.height, " pixels has aspect ratio ", aspect, "; at most 200 is accepted");
  const auto factor = static_cast<double>(options.factor);
  const auto multiples = [&](double sides) { return static_cast<std::int64_t>(sides) * options.factor; };
  Size out{round_to(size.height, options.factor), round_to(size.width, options.factor)};
  if (out.height * out.width > options.max_pixels) {
    const double beta = std::sqrt(height * width / static_cast<double>(options.max_pixels));
    out = {std::max(options.factor, multiples(std::floor(height / beta / factor))), std::max(options.factor, multiples(std::floor(width / beta / factor)))};
  } else if (out.height * out.width < options.min_pixels) {
    const double beta = std::sqrt(static_cast<double>(options.min_pixels) / (height * width));
    out = {multiples(std::ceil(height * beta / factor)), multiples(std::ceil(width * beta / factor))};
  }
  return out;
}

Picture resize_bicubic(const Picture& picture, Size to) {
  if (to.width == picture.width && to.height == picture.height) return picture;
  if (to.width == picture.width) return resize_rows(picture, to.height);
  if (to.height == picture.height) return resize_columns(picture, to.width);
  // the order shows, since the first pass rounds and clips
  const std::int64_t fewer_rows = picture.height - to.height;
  const bool rows_first = fewer_rows > 0 && fewer_rows > 2 * (picture.width - to.width);
  if (rows_first) return resize_columns(resize_rows(picture, to.height), to.width);
  return resize_rows(resize_columns(picture, to.width), to.height);
}

}  // namespace qwen_vl
