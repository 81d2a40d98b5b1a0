#include "processor.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <troupe/base/text.hpp>

namespace qwen_vl {
namespace {

using troupe::Errc;
using troupe::Result;
using troupe::text;

constexpr std::int64_t kChannels = 3;

/// Each byte's value after rescaling to [0, 1] and normalising, by channel; in fp32 as the published processor computes.
using Table = std::array<std::array<float, 256>, kChannels>;
Table table_of(const ProcessorConfig& config) {
  Table out{};
  for (std::size_t channel = 0; channel < out.size(); ++channel) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const auto rescaled = static_cast<float>(static_cast<double>(byte) * (1.0 / 255));
      out[channel][byte] = (rescaled - static_cast<float>(config.mean[channel])) / static_cast<float>(config.deviation[channel]);
    }
  }
  return out;
}

/// Cuts frames of equal size that fit; frames[i] may repeat.
Patches cut(const std::vector<const Picture*>& frames, const ProcessorConfig& config) {
  const std::int64_t patch = config.patch;
  const std::int64_t merge = config.merge;
  Patches out;
  out.t = static_cast<std::int64_t>(frames.size()) / config.temporal_patch;
  out.h = frames.front()->height / patch;
  out.w = frames.front()->width / patch;
  out.values.resize(static_cast<std::size_t>(out.t * out.h * out.w * kChannels * config.temporal_patch * patch * patch));
  const Table table = table_of(config);
  float* to = out.values.data();
  const auto row_of_patch = [&](std::int64_t t, std::int64_t row, std::int64_t column) {
    for (std::int64_t channel = 0; channel < kChannels; ++channel) {
      const auto& values = table[static_cast<std::size_t>(channel)];
      for (std::int64_t frame = 0; frame < config.temporal_patch; ++frame) {
        const Picture& picture = *frames[static_cast<std::size_t>(t * config.temporal_patch + frame)];
        if (frame > 0 && &picture == frames[static_cast<std::size_t>(t * config.temporal_patch + frame - 1)]) {   // a still picture
          to = std::copy_n(to - patch * patch, patch * patch, to);
          continue;
        }
        for (std::int64_t y = 0; y < patch; ++y) {
          const std::uint8_t* from = picture.rgb.data() + ((row * patch + y) * picture.width + column * patch) * kChannels + channel;
          for (std::int64_t x = 0; x < patch; ++x) *to++ = values[from[x * kChannels]];
        }
      }
    }
  };
  for (std::int64_t t = 0; t < out.t; ++t) {
    for (std::int64_t top = 0; top < out.h; top += merge) {
      for (std::int64_t left = 0; left < out.w; left += merge) {
        for (std::int64_t inside = 0; inside < merge * merge; ++inside) row_of_patch(t, top + inside / merge, left + inside % merge);
      }
    }
  }
  return out;
}

Result<std::vector<Picture>> fit(std::span<const Picture> frames, const ProcessorConfig& config) {
  if (config.patch < 1 || config.temporal_patch < 1 || config.merge < 1) {
    return troupe::fail(Errc::kInvalidArgument, text("patch ", config.patch, ", temporal patch ", config.temporal_patch, " and merge ", config.merge, " must be at least 1"));
  }
  const Size from{frames.front().height, frames.front().width};
  const auto to = smart_resize(from, {.factor = config.patch * config.merge, .min_pixels = config.min_pixels, .max_pixels = config.max_pixels});
  if (!to) return troupe::fail(to.error());
  if (to->width > kMaxPixels / to->height) {
    return troupe::fail(Errc::kInvalidArgument, text("a picture of ", from.width, " x ", from.height, " would be resized to ", to->width, " x ", to->height, " pixels; at most ", kMaxPixels,
                                                     " are made, lower min_pixels and max_pixels"));
  }
  std::vector<Picture> out;
  for (const Picture& frame : frames) {
    if (Size{frame.height, frame.width} != from) {
      return troupe::fail(Errc::kBadData, text("frame ", out.size(), " of a video is ", frame.width, " x ", frame.height, ", the first is ", from.width, " x ", from.height));
    }
    out.push_back(resize_bicubic(frame, *to));
  }
  return out;
}

}  // namespace

Result<Patches> process_image(const Picture& picture, const ProcessorConfig& config) {
  const auto fitted = fit({&picture, 1}, config);
  if (!fitted) return troupe::fail(fitted.error());
  return cut(std::vector<const Picture*>(static_cast<std::size_t>(config.temporal_patch), &fitted->front()), config);
}

Result<Patches> process_video(std::span<const Picture> frames, const ProcessorConfig& config) {
  if (frames.empty()) return troupe::fail(Errc::kBadData, "a video without frames");
  const auto fitted = fit(frames, config);
  if (!fitted) return troupe::fail(fitted.error());
  std::vector<const Picture*> filled;
  for (const Picture& frame : *fitted) filled.push_back(&frame);
  while (static_cast<std::int64_t>(filled.size()) % config.temporal_patch != 0) filled.push_back(&fitted->back());
  return cut(filled, config);
}

}  // namespace qwen_vl
