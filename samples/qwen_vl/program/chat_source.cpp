#include "chat_source.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <numeric>
#include <random>

#include <troupe/base/text.hpp>

namespace qwen_vl {

using troupe::Errc;
using troupe::Exception;
using troupe::Result;
using troupe::text;

Result<std::unique_ptr<RecordSource>> open_data(const std::string& path, const std::string& question) {
  std::error_code error;
  if (std::filesystem::exists(path, error)) return open_records(path, {.caption_prompt = question});
  return troupe::fail(Errc::kIo, text("data ", path, " is not there; tools/setup installs tuxpaint-stamps-default, or name a file of yours by --data"));
}

ChatSource::ChatSource(const ChatSourceConfig& config)
    : config_(config), preparation_(troupe::or_throw(read_preparation(config.folder))), records_(troupe::or_throw(open_data(config.data, config.question))) {
  size_ = config.limit > 0 ? std::min(config.limit, records_->size()) : records_->size();
}

void ChatSource::restore(const std::string& state) {
  const auto [end, error] = std::from_chars(state.data(), state.data() + state.size(), made_);
  if (error != std::errc() || end != state.data() + state.size() || made_ < 0) throw Exception({Errc::kBadData, text("the state of the data must be a number, got '", state, "'")});
}

std::int64_t ChatSource::record_at(std::int64_t place) {
  if (config_.once) return place;
  if (const std::int64_t pass = place / size_; pass != pass_) {
    pass_ = pass;
    order_.resize(static_cast<std::size_t>(size_));
    std::iota(order_.begin(), order_.end(), 0);
    std::mt19937_64 random(static_cast<std::uint64_t>(config_.seed) * 1000003 + static_cast<std::uint64_t>(pass));
    for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random() % i]);   // std::shuffle differs between libraries
  }
  return order_[static_cast<std::size_t>(place % size_)];
}

std::optional<Batch> ChatSource::next() {
  const std::int64_t begin = made_ * config_.batch;
  if (config_.once && begin >= size_) return std::nullopt;
  const std::int64_t end = config_.once ? std::min(begin + config_.batch, size_) : begin + config_.batch;
  std::vector<Sample> samples;
  for (std::int64_t place = begin; place < end; ++place) {
    const Record record = troupe::or_throw(records_->read(record_at(place)));
    samples.push_back(troupe::or_throw(prepare(record, preparation_)));
    const auto length = static_cast<std::int64_t>(samples.back().ids.size());
    if (config_.max_tokens > 0 && length > config_.max_tokens) {
      throw Exception({Errc::kBadData, text(record.where, ": has ", length, " tokens, max_tokens is ", config_.max_tokens, "; raise it, or lower max_pixels")});
    }
  }
  Batch out = troupe::or_throw(assemble(collate(samples, preparation_), preparation_.model)).batch;
  out.patches.rows = out.patches.rows.to(config_.dtype);
  ++made_;
  return out;
}

}  // namespace qwen_vl
