#include "source.hpp"

#include <algorithm>
#include <numeric>
#include <random>

#include <ATen/ATen.h>

namespace stamps {

const Picture& PictureCache::get(const std::string& path) {
  const auto found = pictures_.find(path);
  if (found != pictures_.end()) return found->second;
  return pictures_.emplace(path, troupe::or_throw(load_picture(path))).first->second;
}

std::vector<std::size_t> training_batch(std::size_t examples, std::int64_t batch, std::int64_t seed, std::int64_t index) {
  if (examples == 0 || batch < 1) return {};
  const std::size_t size = std::min(examples, static_cast<std::size_t>(batch));
  const auto per_pass = static_cast<std::int64_t>(examples / size);
  std::vector<std::size_t> order(examples);
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(static_cast<std::uint64_t>(seed) * 1000003 + static_cast<std::uint64_t>(index / per_pass));
  // std::shuffle may differ between libraries; this may not
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  const auto begin = order.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(index % per_pass) * size);
  return {begin, begin + static_cast<std::ptrdiff_t>(size)};
}

std::optional<Batch> TrainingSource::next() {
  constexpr std::uint64_t kMost = 4;  // pixels, half a patch
  std::mt19937_64 random(~static_cast<std::uint64_t>(config_.seed) * 1000003 + static_cast<std::uint64_t>(made_));
  const auto shift = [&] { return static_cast<int>(random() % (2 * kMost + 1)) - static_cast<int>(kMost); };
  std::vector<const Example*> captions;
  std::vector<Shown> pictures;
  for (const std::size_t i : training_batch(config_.examples.size(), config_.batch, config_.seed, made_++)) {
    captions.push_back(&config_.examples[i]);
    pictures.push_back({&pictures_.get(config_.examples[i].picture), {shift(), shift()}});
  }
  if (captions.empty()) return std::nullopt;
  return make_batch(captions, pictures);
}

std::optional<Batch> HeldOutSource::next() {
  const std::size_t count = config_.examples.size();
  if (at_ >= count) {
    at_ = 0;
    show_ = static_cast<Show>((static_cast<int>(show_) + 1) % kShows);
    return std::nullopt;
  }
  std::vector<const Example*> captions;
  std::vector<Shown> pictures;
  for (const std::size_t end = std::min(at_ + static_cast<std::size_t>(config_.batch), count); at_ < end; ++at_) {
    captions.push_back(&config_.examples[at_]);
    // half the list away: alphabetical neighbours are alike (two coins, two letters)
    const std::size_t shown = show_ == Show::kShuffled ? (at_ + count / 2) % count : at_;
    if (show_ != Show::kNone) pictures.push_back({&pictures_.get(config_.examples[shown].picture)});
  }
  return make_batch(captions, pictures);
}

Batch make_batch(const std::vector<const Example*>& captions, const std::vector<Shown>& pictures) {
  Batch out;
  std::vector<float> rows;
  rows.reserve(pictures.size() * kPatches * kPatchSize);
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    append_patches(*pictures[i].picture, pictures[i].shift, rows);
    const auto id = static_cast<std::int64_t>(i);
    out.pixels.segments.push_back({.id = id, .sample = id, .rows = kPatches, .cut_multiple = kMerge});
  }
  out.pixels.rows = at::tensor(rows).reshape({static_cast<std::int64_t>(pictures.size()) * kPatches, kPatchSize});
  std::size_t longest = 2;
  for (const Example* example : captions) longest = std::max(longest, example->tokens.size());
  const auto samples = static_cast<std::int64_t>(captions.size());
  const auto length = static_cast<std::int64_t>(longest) - 1;
  out.text.ids = at::full({samples, length}, static_cast<std::int64_t>(kPad), at::kLong);
  out.text.labels = at::full({samples, length}, -100, at::kLong);
  for (std::int64_t s = 0; s < samples; ++s) {
    const auto& tokens = captions[static_cast<std::size_t>(s)]->tokens;
    const at::Tensor row = at::tensor(tokens, at::kLong);
    const std::int64_t count = row.size(0) - 1;
    out.text.counted.push_back(count);
    out.text.ids[s].narrow(0, 0, count).copy_(row.narrow(0, 0, count));
    out.text.labels[s].narrow(0, 0, count).copy_(row.narrow(0, 1, count));
  }
  return out;
}

}  // namespace stamps
