#include "batch_file.hpp"

#include <map>
#include <set>

#include <ATen/ATen.h>

#include <troupe/base/text.hpp>
#include <troupe/train/safetensors.hpp>

namespace qwen_vl {
namespace {

using troupe::Errc;
using troupe::Result;
using troupe::text;
using Tensors = std::map<std::string, at::Tensor>;

at::Tensor take(const Tensors& all, const std::string& key) {
  const auto found = all.find(key);
  return found == all.end() ? at::Tensor() : found->second;
}

Result<std::vector<Grid>> grids_of(const Tensors& all, const std::string& key, const std::string& path) {
  const at::Tensor tensor = take(all, key);
  std::vector<Grid> out;
  if (!tensor.defined()) return out;
  if (tensor.dim() != 2 || tensor.size(1) != 3 || !at::isIntegralType(tensor.scalar_type(), false)) {
    return troupe::fail(Errc::kMismatch, text(path, ": '", key, "' must be whole numbers [n, 3], got ", tensor.sizes()));
  }
  const at::Tensor whole = tensor.to(at::kLong).contiguous();
  const auto* at = whole.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < whole.size(0); ++i) out.push_back({at[3 * i], at[3 * i + 1], at[3 * i + 2]});
  return out;
}

Result<void> check_keys(const Tensors& all, const std::string& path) {
  static const std::set<std::string> known = {"input_ids",      "labels",         "attention_mask",    "pixel_values",
                                              "image_grid_thw", "video_grid_thw", "second_per_grid_ts", "pixel_values_videos"};
  for (const auto& [key, tensor] : all) {
    if (!known.contains(key)) return troupe::fail(Errc::kMismatch, text(path, ": unknown key '", key, "'; see qwen_vl verify --help"));
  }
  for (const char* key : {"input_ids", "labels"}) {
    const at::Tensor tensor = take(all, key);
    if (!tensor.defined()) return troupe::fail(Errc::kMismatch, text(path, ": '", key, "' is missing"));
    if (!at::isIntegralType(tensor.scalar_type(), false)) return troupe::fail(Errc::kMismatch, text(path, ": '", key, "' must be whole numbers, got ", c10::toString(tensor.scalar_type())));
  }
  for (const char* key : {"pixel_values", "pixel_values_videos", "second_per_grid_ts"}) {
    const at::Tensor tensor = take(all, key);
    if (tensor.defined() && std::string_view(key) != "second_per_grid_ts" && !at::isFloatingType(tensor.scalar_type())) {
      return troupe::fail(Errc::kMismatch, text(path, ": '", key, "' must be floating-point, got ", c10::toString(tensor.scalar_type())));
    }
  }
  return {};
}

}  // namespace

Result<RawBatch> read_batch(const std::string& path) {
  const auto all = troupe::read_safetensors(path);
  if (!all) return troupe::fail(all.error());
  if (auto ok = check_keys(*all, path); !ok) return troupe::fail(ok.error());
  RawBatch out;
  out.input_ids = take(*all, "input_ids");
  out.labels = take(*all, "labels");
  out.attention_mask = take(*all, "attention_mask");
  out.pixel_values = take(*all, "pixel_values");
  out.pixel_values_videos = take(*all, "pixel_values_videos");
  for (auto [key, to] : {std::pair{"image_grid_thw", &out.images}, std::pair{"video_grid_thw", &out.videos}}) {
    auto grids = grids_of(*all, key, path);
    if (!grids) return troupe::fail(grids.error());
    *to = std::move(*grids);
  }
  if (const at::Tensor seconds = take(*all, "second_per_grid_ts"); seconds.defined()) {
    out.single_seconds = seconds.scalar_type() != at::kDouble;
    const at::Tensor wide = seconds.to(at::kDouble).flatten().contiguous();
    out.seconds.assign(wide.const_data_ptr<double>(), wide.const_data_ptr<double>() + wide.numel());
  }
  return out;
}

}  // namespace qwen_vl
