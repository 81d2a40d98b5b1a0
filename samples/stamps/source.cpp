#include "source.hpp"

#include <algorithm>
#include <numeric>
#include <random>

#include <ATen/ATen.h>

namespace stamps {

StampSource::StampSource(const SourceConfig& config) : config_(config) { start_pass(); }

void StampSource::start_pass() {
  order_.resize(config_.examples.size());
  std::iota(order_.begin(), order_.end(), 0);
  at_ = 0;
  if (!config_.endless) return;
  std::mt19937_64 random(static_cast<std::uint64_t>(config_.seed) * 1000003 + static_cast<std::uint64_t>(pass_++));
  // std::shuffle may differ between libraries; this may not
  for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random() % i]);
}

const Picture& StampSource::picture(const std::string& path) {
  const auto found = decoded_.find(path);
  if (found != decoded_.end()) return found->second;
  return decoded_.emplace(path, troupe::or_throw(load_picture(path))).first->second;
}

std::optional<Batch> StampSource::next() {
  const auto batch = static_cast<std::size_t>(config_.batch);
  if (config_.endless && at_ + batch > order_.size()) start_pass();
  if (at_ >= order_.size()) {
    start_pass();  // the next call begins another pass
    return std::nullopt;
  }
  std::vector<const Example*> captions;
  std::vector<const Picture*> pictures;
  for (const std::size_t end = std::min(at_ + batch, order_.size()); at_ < end; ++at_) {
    captions.push_back(&config_.examples[order_[at_]]);
    if (config_.pictures == Pictures::kNone) continue;
    const std::size_t other = config_.pictures == Pictures::kShuffled ? (order_[at_] + order_.size() / 2) % order_.size() : order_[at_];
    pictures.push_back(&picture(config_.examples[other].picture));
  }
  return make_batch(captions, pictures);
}

Batch make_batch(const std::vector<const Example*>& captions, const std::vector<const Picture*>& pictures) {
  Batch out;
  std::vector<float> rows;
  rows.reserve(pictures.size() * kPatches * kPatchSize);
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    append_patches(*pictures[i], rows);
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
