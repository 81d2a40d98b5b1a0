#include "prepare.hpp"

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>

#include <troupe/base/text.hpp>
#include <troupe/train/files.hpp>

namespace qwen_vl {
namespace {

using troupe::Errc;
using troupe::Result;
using troupe::text;

/// The failure as one of the record.
troupe::Error at_record(troupe::Error error, const Record& record) {
  error.message = record.where + ": " + error.message;
  return error;
}

Result<Patches> load_image(const PictureSource& source, const ProcessorConfig& config) {
  const auto picture = source.load();
  if (!picture) return troupe::fail(picture.error());
  auto patches = process_image(*picture, config);
  if (!patches) return troupe::fail(patches.error().code, text("picture ", source.name, ": ", patches.error().message));
  return patches;
}

Result<Patches> load_video(const VideoSource& source, const ProcessorConfig& config) {
  std::vector<Picture> frames;
  for (const auto& frame : source.frames) {
    auto picture = frame.load();
    if (!picture) return troupe::fail(picture.error());
    frames.push_back(std::move(*picture));
  }
  return process_video(frames, config);
}

std::int64_t tokens_of(const Patches& patches, const ModelConfig& config) { return patches.t * patches.h * patches.w / config.vision.merge_unit(); }

/// Pixel rows of many pictures in one tensor.
at::Tensor rows_of(const std::vector<const Patches*>& all, std::int64_t values) {
  if (all.empty()) return {};
  std::vector<at::Tensor> parts;
  for (const Patches* one : all) parts.push_back(at::tensor(at::ArrayRef<float>(one->values)).view({-1, values}));
  return at::cat(parts, 0);
}

}  // namespace

Result<void> check(const Preparation& p, const std::string& folder) {
  const auto differ = [&](const char* what, auto expected, auto got) {
    return troupe::fail(Errc::kMismatch, text(folder, ": ", what, ": config.json says ", expected, ", the files beside it ", got));
  };
  const VisionConfig& vision = p.model.vision;
  if (vision.patch != p.pictures.patch) return differ("patch size", vision.patch, p.pictures.patch);
  if (vision.merge != p.pictures.merge) return differ("merge size", vision.merge, p.pictures.merge);
  if (vision.temporal_patch != p.pictures.temporal_patch) return differ("temporal patch size", vision.temporal_patch, p.pictures.temporal_patch);
  if (p.tokenizer.size() > p.model.language.vocabulary) return differ("vocabulary", p.model.language.vocabulary, p.tokenizer.size());
  for (const auto& [name, id] : {std::pair{"<|image_pad|>", p.model.tokens.image}, std::pair{"<|video_pad|>", p.model.tokens.video}}) {
    const auto got = p.tokenizer.id_of(name);
    if (!got || *got != id) return differ(name, id, got ? text("the id ", *got) : std::string("no such token"));
  }
  return {};
}

Result<Preparation> read_preparation(const std::string& folder) {
  const auto model = read_config(folder);
  if (!model) return troupe::fail(model.error());
  auto tokenizer = Tokenizer::load(folder);
  if (!tokenizer) return troupe::fail(tokenizer.error());
  const auto pictures = read_processor_config(folder);
  if (!pictures) return troupe::fail(pictures.error());
  Preparation out{std::move(*tokenizer), *pictures, *model};
  if (auto ok = check(out, folder); !ok) return troupe::fail(ok.error());
  return out;
}

Result<void> write_preparation(const Preparation& preparation, const std::string& folder) {
  if (auto ok = troupe::write_file(folder + "/config.json", config_json(preparation.model)); !ok) return ok;
  if (auto ok = troupe::write_file(folder + "/preprocessor_config.json", processor_config_json(preparation.pictures)); !ok) return ok;
  return preparation.tokenizer.save(folder);
}

Result<Sample> prepare(const Record& record, const Preparation& preparation, const ChatOptions& options) {
  Sample out;
  for (const auto& source : record.pictures) {
    auto patches = load_image(source, preparation.pictures);
    if (!patches) return troupe::fail(at_record(patches.error(), record));
    out.images.push_back(std::move(*patches));
  }
  for (const auto& source : record.videos) {
    auto patches = load_video(source, preparation.pictures);
    if (!patches) return troupe::fail(at_record(patches.error(), record));
    out.videos.push_back(std::move(*patches));
    out.seconds.push_back(static_cast<double>(preparation.pictures.temporal_patch) / source.frames_per_second);
  }
  std::vector<std::int64_t> counts;
  std::size_t image = 0, video = 0;
  for (const Turn& turn : record.conversation.turns) {
    for (const Part& part : turn.parts) {
      if (part.kind == Part::Kind::kImage) counts.push_back(tokens_of(out.images.at(image++), preparation.model));
      if (part.kind == Part::Kind::kVideo) counts.push_back(tokens_of(out.videos.at(video++), preparation.model));
    }
  }
  auto encoded = encode_chat(preparation.tokenizer, record.conversation, counts, options);
  if (!encoded) return troupe::fail(at_record(encoded.error(), record));
  out.ids = std::move(encoded->ids);
  out.labels = std::move(encoded->labels);
  return out;
}

RawBatch collate(const std::vector<Sample>& samples, const Preparation& preparation) {
  std::size_t longest = 0;
  for (const Sample& sample : samples) longest = std::max(longest, sample.ids.size());
  const auto count = static_cast<std::int64_t>(samples.size());
  RawBatch out;
  out.input_ids = at::full({count, static_cast<std::int64_t>(longest)}, preparation.model.tokens.end_of_text, at::kLong);
  out.labels = at::full_like(out.input_ids, kIgnored);
  out.attention_mask = at::zeros_like(out.input_ids);
  std::vector<const Patches*> images, videos;
  for (std::int64_t i = 0; i < count; ++i) {
    const Sample& sample = samples[static_cast<std::size_t>(i)];
    const auto length = static_cast<std::int64_t>(sample.ids.size());
    out.input_ids[i].narrow(0, 0, length).copy_(at::tensor(sample.ids, at::kLong));
    out.labels[i].narrow(0, 0, length).copy_(at::tensor(sample.labels, at::kLong));
    out.attention_mask[i].narrow(0, 0, length).fill_(1);
    for (const Patches& one : sample.images) images.push_back(&one);
    for (const Patches& one : sample.videos) videos.push_back(&one);
    out.seconds.insert(out.seconds.end(), sample.seconds.begin(), sample.seconds.end());
  }
  for (const Patches* one : images) out.images.push_back({one->t, one->h, one->w});
  for (const Patches* one : videos) out.videos.push_back({one->t, one->h, one->w});
  out.pixel_values = rows_of(images, preparation.model.vision.patch_values());
  out.pixel_values_videos = rows_of(videos, preparation.model.vision.patch_values());
  return out;
}

}  // namespace qwen_vl
