#include "processor.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

#include <nlohmann/json.hpp>

#include <troupe/base/text.hpp>

namespace qwen_vl {
namespace {

using nlohmann::json;
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

Result<void> read_whole(const json& root, const char* key, std::int64_t& to, const std::string& name) {
  if (!root.contains(key) || root.at(key).is_null()) return {};
  if (!root.at(key).is_number_integer() || root.at(key).get<std::int64_t>() < 1) {
    return troupe::fail(Errc::kInvalidArgument, text(name, ": '", key, "' must be a whole number >= 1, got ", root.at(key).dump()));
  }
  to = root.at(key).get<std::int64_t>();
  return {};
}

Result<void> read_three(const json& root, const char* key, std::array<double, 3>& to, const std::string& name) {
  if (!root.contains(key) || root.at(key).is_null()) return {};
  const json& list = root.at(key);
  if (!list.is_array() || list.size() != 3 || !std::ranges::all_of(list, [](const json& one) { return one.is_number(); })) {
    return troupe::fail(Errc::kInvalidArgument, text(name, ": '", key, "' must be three numbers, got ", list.dump()));
  }
  for (std::size_t i = 0; i < 3; ++i) to[i] = list[i].get<double>();
  return {};
}

Result<void> check(const ProcessorConfig& config, const std::string& name) {
  if (config.min_pixels > config.max_pixels) {
    return troupe::fail(Errc::kInvalidArgument, text(name, ": min_pixels ", config.min_pixels, " is above max_pixels ", config.max_pixels));
  }
  if (std::ranges::any_of(config.deviation, [](double one) { return !(one > 0); })) return troupe::fail(Errc::kInvalidArgument, text(name, ": image_std must be > 0"));
  return {};
}

Result<std::vector<Picture>> fit(std::span<const Picture> frames, const ProcessorConfig& config) {
  const Size from{frames.front().height, frames.front().width};
  const auto to = smart_resize(from, {.factor = config.patch * config.merge, .min_pixels = config.min_pixels, .max_pixels = config.max_pixels});
  if (!to) return troupe::fail(to.error());
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

Result<ProcessorConfig> parse_processor_config(const std::string& content, const std::string& name) {
  const json root = json::parse(content, nullptr, false);
  if (!root.is_object()) return troupe::fail(Errc::kBadData, text(name, ": expected a JSON object"));
  ProcessorConfig out;
  Result<void> ok;
  if (root.contains("size") && root.at("size").is_object()) {
    ok = read_whole(root.at("size"), "shortest_edge", out.min_pixels, name);
    if (ok) ok = read_whole(root.at("size"), "longest_edge", out.max_pixels, name);
  }
  for (auto [key, to] : {std::pair{"min_pixels", &out.min_pixels}, std::pair{"max_pixels", &out.max_pixels}, std::pair{"patch_size", &out.patch},
                         std::pair{"temporal_patch_size", &out.temporal_patch}, std::pair{"merge_size", &out.merge}}) {
    if (ok) ok = read_whole(root, key, *to, name);
  }
  if (ok) ok = read_three(root, "image_mean", out.mean, name);
  if (ok) ok = read_three(root, "image_std", out.deviation, name);
  if (ok) ok = check(out, name);
  if (!ok) return troupe::fail(ok.error());
  return out;
}

Result<ProcessorConfig> read_processor_config(const std::string& folder) {
  const std::string path = folder + "/preprocessor_config.json";
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  if (!file || !(content << file.rdbuf())) return troupe::fail(Errc::kIo, text(path, ": can't be read"));
  return parse_processor_config(content.str(), path);
}

std::string processor_config_json(const ProcessorConfig& config) {
  const json out = {{"image_processor_type", "Qwen2VLImageProcessor"}, {"patch_size", config.patch}, {"temporal_patch_size", config.temporal_patch},
                    {"merge_size", config.merge}, {"min_pixels", config.min_pixels}, {"max_pixels", config.max_pixels},
                    {"size", {{"shortest_edge", config.min_pixels}, {"longest_edge", config.max_pixels}}}, {"image_mean", config.mean}, {"image_std", config.deviation}};
  return out.dump(2) + "\n";
}

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
