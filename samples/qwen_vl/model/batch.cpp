#include "batch.hpp"

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>

#include <troupe/base/text.hpp>

namespace qwen_vl {
namespace {

using troupe::Errc;
using troupe::Result;
using troupe::text;

/// A picture or video of a sample, where its patches begin among all (images first, then videos), and its run.
struct Item {
  std::int64_t sample = 0;
  std::int64_t first_patch = 0;
  Grid grid;
  std::int64_t column = 0;      ///< Of its first token.
};

/// All of a batch's checked inputs on the host.
struct Inputs {
  std::vector<std::vector<std::int64_t>> ids, labels;
  std::vector<std::vector<bool>> mask;
};

Result<void> check_tensor(const at::Tensor& tensor, const char* name, at::IntArrayRef sizes) {
  if (!tensor.defined()) return troupe::fail(Errc::kMismatch, text("batch: '", name, "' is missing"));
  if (tensor.sizes() != sizes) return troupe::fail(Errc::kMismatch, text("batch: '", name, "' must be ", sizes, ", got ", tensor.sizes()));
  return {};
}

std::vector<std::vector<std::int64_t>> rows_of(const at::Tensor& tensor) {
  const at::Tensor whole = tensor.to(at::kLong).contiguous();
  std::vector<std::vector<std::int64_t>> out;
  for (std::int64_t row = 0; row < whole.size(0); ++row) {
    const auto* begin = whole.const_data_ptr<std::int64_t>() + row * whole.size(1);
    out.emplace_back(begin, begin + whole.size(1));
  }
  return out;
}

/// Each entry is in [0, vocabulary), or -100 where allowed.
Result<void> check_ids(const std::vector<std::vector<std::int64_t>>& rows, const char* name, std::int64_t vocabulary, bool ignored) {
  for (std::size_t sample = 0; sample < rows.size(); ++sample) {
    for (std::size_t at = 0; at < rows[sample].size(); ++at) {
      const std::int64_t id = rows[sample][at];
      if ((id >= 0 && id < vocabulary) || (ignored && id == -100)) continue;
      return troupe::fail(Errc::kBadData, text("batch: '", name, "'[", sample, "][", at, "] is ", id, "; expected 0 .. ", vocabulary - 1, ignored ? " or -100" : ""));
    }
  }
  return {};
}

Result<Inputs> read_text(const RawBatch& raw, const LanguageConfig& config) {
  if (!raw.input_ids.defined() || raw.input_ids.dim() != 2) {
    return troupe::fail(Errc::kMismatch, text("batch: 'input_ids' must be [samples, tokens], got ", raw.input_ids.defined() ? text(raw.input_ids.sizes()) : "nothing"));
  }
  if (auto ok = check_tensor(raw.labels, "labels", raw.input_ids.sizes()); !ok) return troupe::fail(ok.error());
  Inputs out{rows_of(raw.input_ids), rows_of(raw.labels), {}};
  out.mask.assign(out.ids.size(), std::vector<bool>(static_cast<std::size_t>(raw.input_ids.size(1)), true));
  if (raw.attention_mask.defined()) {
    if (auto ok = check_tensor(raw.attention_mask, "attention_mask", raw.input_ids.sizes()); !ok) return troupe::fail(ok.error());
    const auto mask = rows_of(raw.attention_mask);
    for (std::size_t sample = 0; sample < mask.size(); ++sample) {
      for (std::size_t at = 0; at < mask[sample].size(); ++at) out.mask[sample][at] = mask[sample][at] != 0;
    }
  }
  if (auto ok = check_ids(out.ids, "input_ids", config.vocabulary, false); !ok) return troupe::fail(ok.error());
  if (auto ok = check_ids(out.labels, "labels", config.vocabulary, true); !ok) return troupe::fail(ok.error());
  return out;
}

Result<void> check_pictures(const at::Tensor& values, const std::vector<Grid>& grids, const char* name, const VisionConfig& config) {
  std::int64_t patches = 0;
  for (std::size_t i = 0; i < grids.size(); ++i) {
    const Grid& grid = grids[i];
    if (grid.t < 1 || grid.h < 1 || grid.w < 1 || grid.h % config.merge != 0 || grid.w % config.merge != 0) {
      return troupe::fail(Errc::kMismatch, text("batch: the grid of ", name, " ", i, " is ", grid.t, " x ", grid.h, " x ", grid.w, "; rows and columns must be multiples of ", config.merge));
    }
    patches += grid.patches();
  }
  if (!values.defined() && grids.empty()) return {};
  if (values.defined() && values.dim() == 2 && values.size(0) == patches && values.size(1) == config.patch_values()) return {};
  return troupe::fail(Errc::kMismatch, text("batch: the grids of all ", name, "s have ", patches, " patches of ", config.patch_values(), " values, the pixel values are ",
                                            values.defined() ? text(values.sizes()) : "missing"));
}

/// Walks the samples' tokens: text runs, and pictures in order of appearance. Images and videos have queues of their own.
class Walk {
 public:
  Walk(const RawBatch& raw, const ModelConfig& config) : raw_(raw), config_(config) {
    for (const Grid& grid : raw.images) all_image_patches_ += grid.patches();
  }

  /// Appends this sample's items; returns its runs over the tokens that are not masked.
  Result<std::vector<TokenRun>> sample(std::int64_t number, const std::vector<std::int64_t>& ids, const std::vector<bool>& mask) {
    std::vector<TokenRun> runs;
    for (std::size_t at = 0; at < ids.size();) {
      const bool is_image = ids[at] == config_.tokens.image;
      const bool is_video = ids[at] == config_.tokens.video;
      if (!is_image && !is_video) {
        if (mask[at]) {
          if (runs.empty() || runs.back().grid.h != 0) runs.push_back({});
          ++runs.back().length;
        }
        ++at;
        continue;
      }
      auto run = picture(number, ids, mask, at, is_video);
      if (!run) return troupe::fail(run.error());
      at += static_cast<std::size_t>(run->length);
      runs.push_back(*run);
    }
    return runs;
  }

  /// After the last sample: every picture must have had its place.
  [[nodiscard]] Result<void> finish() const {
    for (const auto& [used, grids, name] : {std::tuple{images_, &raw_.images, "image"}, std::tuple{videos_, &raw_.videos, "video"}}) {
      if (used != grids->size()) {
        return troupe::fail(Errc::kMismatch, text("batch: ", grids->size(), " ", name, "s were given, the tokens have places for ", used));
      }
    }
    return {};
  }

  [[nodiscard]] const std::vector<Item>& items() const noexcept { return items_; }

 private:
  Result<TokenRun> picture(std::int64_t sample, const std::vector<std::int64_t>& ids, const std::vector<bool>& mask, std::size_t at, bool is_video) {
    const auto& grids = is_video ? raw_.videos : raw_.images;
    std::size_t& used = is_video ? videos_ : images_;
    const char* name = is_video ? "video" : "image";
    if (used >= grids.size()) {
      return troupe::fail(Errc::kMismatch, text("batch: sample ", sample, " has a place for ", name, " ", used, " at token ", at, ", but only ", grids.size(), " were given"));
    }
    const Grid& grid = grids[used];
    const std::int64_t expected = grid.patches() / config_.vision.merge_unit();
    std::int64_t got = 0;
    while (got < expected && at + static_cast<std::size_t>(got) < ids.size() && ids[at + static_cast<std::size_t>(got)] == ids[at] && mask[at + static_cast<std::size_t>(got)]) ++got;
    if (got != expected) {
      return troupe::fail(Errc::kMismatch, text("batch: sample ", sample, ", ", name, " ", used, " at token ", at, ": its grid ", grid.t, " x ", grid.h, " x ", grid.w,
                                                " makes ", expected, " tokens, the sample has ", got, " (unmasked) places for them"));
    }
    std::int64_t& patches = is_video ? video_patches_ : image_patches_;
    items_.push_back({sample, patches + (is_video ? all_image_patches_ : 0), grid, static_cast<std::int64_t>(at)});
    patches += grid.patches();
    TokenRun run{expected, grid, is_video, 1, raw_.single_seconds};
    if (is_video && used < raw_.seconds.size()) run.seconds = raw_.seconds[used];
    ++used;
    return run;
  }

  const RawBatch& raw_;
  const ModelConfig& config_;
  std::size_t images_ = 0, videos_ = 0;
  std::int64_t image_patches_ = 0, video_patches_ = 0, all_image_patches_ = 0;
  std::vector<Item> items_;
};

/// Rows of patches in window order.
struct Order {
  std::vector<std::int64_t> rows;         ///< Of the original patches.
  std::vector<std::int64_t> coordinates;  ///< Row and column of each.
  troupe::Segments windows;
  std::vector<std::int64_t> original;     ///< Of the merged tokens.
  std::int64_t frames = 0;
};

void append(Order& order, const Item& item, const VisionConfig& config, std::vector<std::int64_t>& columns) {
  const Windows windows = windows_of(item.grid, config);
  const std::int64_t unit = config.merge_unit();
  const std::int64_t wide = item.grid.w / config.merge;
  const std::int64_t high = item.grid.h / config.merge;
  for (const std::int64_t number : windows.units) {
    const std::int64_t top = number / wide % high * config.merge;
    const std::int64_t left = number % wide * config.merge;
    for (std::int64_t inside = 0; inside < unit; ++inside) {
      order.rows.push_back(item.first_patch + number * unit + inside);
      order.coordinates.push_back(top + inside / config.merge);
      order.coordinates.push_back(left + inside % config.merge);
    }
    order.original.push_back(item.first_patch / unit + number);
    columns.push_back(item.column + number);
  }
  std::int64_t inside = 0;
  for (std::size_t window = 0; window < windows.sizes.size(); ++window) {
    inside = window > 0 && windows.frames[window] == windows.frames[window - 1] ? inside + 1 : 0;
    const std::int64_t rows = windows.sizes[window] * unit;
    order.windows.push_back({.id = (order.frames + windows.frames[window]) << 24 | inside, .sample = item.sample, .rows = rows, .cut_multiple = rows});
  }
  order.frames += item.grid.t;
}

troupe::Packed patches_of(const RawBatch& raw, const Order& order, const VisionConfig& config) {
  std::vector<at::Tensor> parts;
  for (const at::Tensor* values : {&raw.pixel_values, &raw.pixel_values_videos}) {
    if (values->defined()) parts.push_back(*values);
  }
  if (parts.empty()) return {at::zeros({0, config.patch_values()}, raw.pixel_values.defined() ? raw.pixel_values.options() : at::TensorOptions(at::kFloat)), {}};
  const at::Tensor all = parts.size() == 1 ? parts.front() : at::cat(parts, 0);
  return {all.index_select(0, at::tensor(order.rows, at::kLong)), order.windows};
}

/// Tensors of one sample a row.
class TextRows {
 public:
  TextRows(std::int64_t samples, std::int64_t length)
      : positions_(at::zeros({samples, 3, length}, at::kLong)), mask_(at::ones({samples, length}, at::kBool)), labels_(at::full({samples, length}, -100, at::kLong)), length_(length) {}

  void set(std::int64_t sample, const std::vector<std::int64_t>& labels, const std::vector<bool>& mask, const std::vector<std::int64_t>& positions, bool ignore_mask) {
    auto* place = positions_.mutable_data_ptr<std::int64_t>() + sample * 3 * length_;
    auto* seen = mask_.mutable_data_ptr<bool>() + sample * length_;
    auto* next = labels_.mutable_data_ptr<std::int64_t>() + sample * length_;
    const auto valid = static_cast<std::int64_t>(positions.size()) / 3;
    std::int64_t at = 0;
    std::int64_t padded = 0;
    counted_.emplace_back();
    for (std::int64_t i = 0; i < length_; ++i) {
      const bool is_seen = mask[static_cast<std::size_t>(i)];
      seen[i] = is_seen;
      padded += is_seen ? 0 : 1;
      for (std::int64_t axis = 0; axis < 3; ++axis) {
        if (ignore_mask) place[axis * length_ + i] = i;
        else if (is_seen) place[axis * length_ + i] = positions[static_cast<std::size_t>(axis * valid + at)];
      }
      if (is_seen) ++at;
      if (i + 1 == length_ || labels[static_cast<std::size_t>(i + 1)] == -100) continue;
      next[i] = labels[static_cast<std::size_t>(i + 1)];
      counted_.back().push_back(i);
    }
    padded_.push_back(padded);
  }

  Text take(const at::Tensor& ids, std::vector<std::vector<std::int64_t>> columns) {
    return {ids.to(at::kLong).contiguous(), labels_, positions_, mask_, std::move(padded_), std::move(counted_), std::move(columns)};
  }

 private:
  at::Tensor positions_, mask_, labels_;
  std::int64_t length_;
  std::vector<std::int64_t> padded_;
  std::vector<std::vector<std::int64_t>> counted_;
};

}  // namespace

Result<Assembled> assemble(const RawBatch& raw, const ModelConfig& config, VideoPositions video) {
  const auto inputs = read_text(raw, config.language);
  if (!inputs) return troupe::fail(inputs.error());
  if (auto ok = check_pictures(raw.pixel_values, raw.images, "image", config.vision); !ok) return troupe::fail(ok.error());
  if (auto ok = check_pictures(raw.pixel_values_videos, raw.videos, "video", config.vision); !ok) return troupe::fail(ok.error());
  if (!raw.seconds.empty() && raw.seconds.size() != raw.videos.size()) {
    return troupe::fail(Errc::kMismatch, text("batch: 'second_per_grid_ts' has ", raw.seconds.size(), " entries for ", raw.videos.size(), " videos"));
  }
  const auto samples = static_cast<std::int64_t>(inputs->ids.size());
  Walk walk(raw, config);
  TextRows rows(samples, raw.input_ids.size(1));
  // transformers counts on through padding when no sample of the batch has a picture
  const bool ignore_mask = raw.images.empty() && raw.videos.empty();
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const auto i = static_cast<std::size_t>(sample);
    const auto runs = walk.sample(sample, inputs->ids[i], inputs->mask[i]);
    if (!runs) return troupe::fail(runs.error());
    rows.set(sample, inputs->labels[i], inputs->mask[i], rope_positions(*runs, config, video), ignore_mask);
  }
  if (auto ok = walk.finish(); !ok) return troupe::fail(ok.error());
  Order order;
  std::vector<std::vector<std::int64_t>> columns(inputs->ids.size());
  for (const Item& item : walk.items()) append(order, item, config.vision, columns[static_cast<std::size_t>(item.sample)]);
  Assembled out;
  out.batch.patches = patches_of(raw, order, config.vision);
  out.batch.coordinates = {at::tensor(order.coordinates, at::kLong).view({-1, 2}), order.windows};
  out.batch.text = rows.take(raw.input_ids, std::move(columns));
  out.original = std::move(order.original);
  return out;
}

}  // namespace qwen_vl
