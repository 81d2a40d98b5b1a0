#include "chat_source.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>

#include <troupe/base/text.hpp>

namespace qwen_vl {
namespace {

namespace fs = std::filesystem;
using troupe::Errc;
using troupe::Exception;
using troupe::Result;
using troupe::text;

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

/// Pictures with captions beside them, in order of their paths.
class CaptionFolder final : public RecordSource {
 public:
  CaptionFolder(const fs::path& folder, std::string question) : question_(std::move(question)) {
    std::error_code error;
    for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      if (at->path().extension() != ".png") continue;
      std::string caption = first_line(fs::path(at->path()).replace_extension(".txt"));
      if (!caption.empty()) all_.push_back({at->path().string(), std::move(caption)});
    }
    std::ranges::sort(all_, {}, &Captioned::picture);   // the order of a folder is the file system's
  }
  [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(all_.size()); }
  [[nodiscard]] Result<Record> read(std::int64_t number) const override {
    if (number < 0 || number >= size()) return troupe::fail(Errc::kInvalidArgument, text("record ", number, " of ", size()));
    const Captioned& one = all_[static_cast<std::size_t>(number)];
    Record out;
    out.where = one.picture;
    out.pictures = {{.name = one.picture}};
    out.conversation.turns = {{"user", {{.kind = Part::Kind::kImage}, {Part::Kind::kText, question_}}}, {"assistant", {{Part::Kind::kText, one.caption}}}};
    return out;
  }

 private:
  struct Captioned {
    std::string picture, caption;
  };
  std::string question_;
  std::vector<Captioned> all_;
};

}  // namespace

Result<std::unique_ptr<RecordSource>> open_data(const std::string& path, const std::string& question) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    return troupe::fail(Errc::kIo, text("data ", path, " is not there; tools/setup installs tuxpaint-stamps-default, or name a file of yours by --data"));
  }
  if (!fs::is_directory(path, error)) return open_records(path, {.caption_prompt = question});
  auto out = std::make_unique<CaptionFolder>(path, question);
  if (out->size() == 0) return troupe::fail(Errc::kBadData, text("data folder ", path, ": expected PNG pictures with captions (name.txt) beside them, found none"));
  return out;
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
