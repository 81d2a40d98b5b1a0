#include "processor_config.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
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

constexpr std::int64_t kBicubic = 3;   // PIL's number
constexpr std::int64_t kMostPixels = std::int64_t{1} << 40;

std::string shown(const json& value) { return value.is_structured() ? text("an ", value.type_name()) : value.dump(-1, ' ', true).substr(0, 80); }

/// Reads the keys of one object; the first fault stays.
class Keys {
 public:
  Keys(const json& root, const std::string& name) : root_(root), name_(name) {}

  template <class... Parts>
  void wrong(const Parts&... parts) {
    if (ok_) ok_ = troupe::fail(Errc::kInvalidArgument, text(name_, ": ", parts...));
  }

  [[nodiscard]] const json* find(const char* key) const {
    const auto found = root_.find(key);
    return found == root_.end() || found->is_null() ? nullptr : &*found;
  }

  void whole(const char* key, std::int64_t most, std::int64_t& to) {
    const json* value = find(key);
    if (value == nullptr) return;
    // larger unsigned numbers would wrap
    const bool good = value->is_number_integer() && !(value->is_number_unsigned() && value->get<std::uint64_t>() > static_cast<std::uint64_t>(most));
    if (!good || value->get<std::int64_t>() < 1) return wrong("'", key, "' must be a whole number from 1 to ", most, ", got ", shown(*value));
    to = value->get<std::int64_t>();
  }

  void three(const char* key, std::array<double, 3>& to) {
    const json* value = find(key);
    if (value == nullptr) return;
    if (!value->is_array() || value->size() != 3 || !std::ranges::all_of(*value, [](const json& one) { return one.is_number(); })) {
      return wrong("'", key, "' must be three numbers, got ", shown(*value), value->is_array() ? text(" of ", value->size()) : "");
    }
    for (std::size_t i = 0; i < 3; ++i) to[i] = (*value)[i].get<double>();
  }

  /// A key that may only be `expected`: another value is a step that is not done here.
  void only(const char* key, const json& expected) {
    const json* value = find(key);
    if (value != nullptr && *value != expected) wrong("'", key, "' is ", shown(*value), "; only ", expected.dump(), " is done here");
  }

  void no_other_steps() {
    constexpr std::array<std::string_view, 5> kDone = {"do_resize", "do_rescale", "do_normalize", "do_convert_rgb", "do_sample_frames"};
    for (const auto& [key, value] : root_.items()) {
      if (key.starts_with("do_") && std::ranges::find(kDone, key) == kDone.end() && value != false && !value.is_null()) wrong("'", key, "' is ", shown(value), "; such a step is not done here");
    }
  }

  [[nodiscard]] const Result<void>& ok() const { return ok_; }

 private:
  const json& root_;
  const std::string& name_;
  Result<void> ok_;
};

void read_bounds(Keys& keys, const std::string& name, ProcessorConfig& to) {
  if (const json* size = keys.find("size"); size != nullptr) {
    if (!size->is_object()) return keys.wrong("'size' must be an object with shortest_edge and longest_edge, got ", shown(*size));
    Keys edges(*size, name);
    for (const char* key : {"height", "width"}) {
      if (edges.find(key) != nullptr) edges.wrong("'size' has '", key, "': a fixed size; expected shortest_edge and longest_edge");
    }
    edges.whole("shortest_edge", kMostPixels, to.min_pixels);
    edges.whole("longest_edge", kMostPixels, to.max_pixels);
    if (!edges.ok()) return keys.wrong(edges.ok().error().message.substr(name.size() + 2));
  }
  keys.whole("min_pixels", kMostPixels, to.min_pixels);
  keys.whole("max_pixels", kMostPixels, to.max_pixels);
  if (to.min_pixels > to.max_pixels) keys.wrong("min_pixels ", to.min_pixels, " is above max_pixels ", to.max_pixels);
}

Result<ProcessorConfig> config_of(const json& root, const std::string& name, ProcessorKind kind) {
  if (!root.is_object()) return troupe::fail(Errc::kBadData, text(name, ": expected a JSON object"));
  ProcessorConfig out;
  out.min_pixels = kind == ProcessorKind::kImage ? 56 * 56 : 128 * 28 * 28;
  out.max_pixels = kind == ProcessorKind::kImage ? 28 * 28 * 1280 : 28 * 28 * 768;
  Keys keys(root, name);
  read_bounds(keys, name, out);
  keys.whole("patch_size", 1024, out.patch);
  keys.whole("temporal_patch_size", 64, out.temporal_patch);
  keys.whole("merge_size", 64, out.merge);
  keys.three("image_mean", out.mean);
  keys.three("image_std", out.deviation);
  if (std::ranges::any_of(out.deviation, [](double one) { return !(one > 0); })) keys.wrong("'image_std' must be > 0");
  for (const char* key : {"do_resize", "do_rescale", "do_normalize", "do_convert_rgb"}) keys.only(key, true);
  keys.only("resample", kBicubic);
  keys.only("cap_pixels_per_frame", false);
  if (const json* factor = keys.find("rescale_factor"); factor != nullptr && !(factor->is_number() && std::abs(factor->get<double>() * 255 - 1) < 1e-6)) {
    keys.wrong("'rescale_factor' is ", shown(*factor), "; only 1/255 is done here");
  }
  keys.no_other_steps();
  if (!keys.ok()) return troupe::fail(keys.ok().error());
  return out;
}

Result<json> read_json(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  if (!file || !(content << file.rdbuf())) return troupe::fail(Errc::kIo, text(path, ": can't be read, or is empty"));
  json root = json::parse(content.str(), nullptr, false);
  if (!root.is_object()) return troupe::fail(Errc::kBadData, text(path, ": expected a JSON object"));
  return root;
}

/// From `key` of processor_config.json, or else from the first of `files` that is there.
Result<ProcessorConfig> read_from(const std::string& folder, const char* key, std::initializer_list<const char*> files, ProcessorKind kind) {
  const std::string nested = folder + "/processor_config.json";
  if (std::filesystem::exists(nested)) {
    const auto root = read_json(nested);
    if (!root) return troupe::fail(root.error());
    if (root->contains(key)) return config_of(root->at(key), text(nested, ", ", key), kind);
  }
  for (const char* file : files) {
    const std::string path = folder + "/" + file;
    if (!std::filesystem::exists(path)) continue;
    const auto root = read_json(path);
    if (!root) return troupe::fail(root.error());
    return config_of(*root, path, kind);
  }
  return troupe::fail(Errc::kIo, text(folder, ": expected preprocessor_config.json, or processor_config.json with '", key, "'"));
}

}  // namespace

Result<ProcessorConfig> parse_processor_config(const std::string& content, const std::string& name, ProcessorKind kind) {
  return config_of(json::parse(content, nullptr, false), name, kind);
}

Result<ProcessorConfig> read_processor_config(const std::string& folder) {
  return read_from(folder, "image_processor", {"preprocessor_config.json"}, ProcessorKind::kImage);
}

Result<ProcessorConfig> read_video_processor_config(const std::string& folder) {
  return read_from(folder, "video_processor", {"video_preprocessor_config.json", "preprocessor_config.json"}, ProcessorKind::kVideo);
}

std::string processor_config_json(const ProcessorConfig& config) {
  const json out = {{"image_processor_type", "Qwen2VLImageProcessor"}, {"processor_class", "Qwen2_5_VLProcessor"}, {"patch_size", config.patch},
                    {"temporal_patch_size", config.temporal_patch}, {"merge_size", config.merge}, {"min_pixels", config.min_pixels}, {"max_pixels", config.max_pixels},
                    {"size", {{"shortest_edge", config.min_pixels}, {"longest_edge", config.max_pixels}}}, {"image_mean", config.mean}, {"image_std", config.deviation}};
  return out.dump(2) + "\n";
}

}  // namespace qwen_vl
