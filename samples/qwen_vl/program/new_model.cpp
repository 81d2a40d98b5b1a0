#include "new_model.hpp"

#include <algorithm>
#include <utility>

#include "chat_source.hpp"
#include "vocabulary.hpp"

namespace qwen_vl {
namespace {

constexpr std::int64_t kHeadDim = 32;
constexpr std::int64_t kPatch = 14;

ModelConfig shape_of(const TrainConfig& config, const Tokenizer& tokenizer) {
  ModelConfig out;
  const std::int64_t heads = config.width / kHeadDim;
  // windows of 2 x 2 tokens: a picture of 112 x 112 has four; every other block sees all of it
  out.vision = {.depth = config.layers, .hidden = config.width, .heads = heads, .intermediate = config.width * 8 / 3, .out_hidden = config.width, .patch = kPatch, .window = 4 * kPatch};
  out.vision.full_attention.clear();
  for (std::int64_t layer = 1; layer < config.layers; layer += 2) out.vision.full_attention.push_back(layer);
  out.language = {.layers = config.layers, .hidden = config.width, .heads = heads, .kv_heads = heads % 2 == 0 ? heads / 2 : heads, .head_dim = kHeadDim,
                  .intermediate = config.width * 8 / 3, .vocabulary = tokenizer.size(), .tied = true, .sections = {4, 6, 6}};
  for (auto [name, to] : {std::pair{"<|image_pad|>", &out.tokens.image}, std::pair{"<|video_pad|>", &out.tokens.video}, std::pair{"<|vision_start|>", &out.tokens.vision_start},
                          std::pair{"<|vision_end|>", &out.tokens.vision_end}, std::pair{"<|endoftext|>", &out.tokens.end_of_text}, std::pair{"<|im_end|>", &out.tokens.end_of_turn}}) {
    *to = tokenizer.id_of(name).value();   // the vocabulary's added tokens have them all
  }
  return out;
}

}  // namespace

troupe::Result<Preparation> new_model(const TrainConfig& config) {
  const auto data = open_data(config.data, config.question);
  if (!data) return troupe::fail(data.error());
  std::vector<std::string> lines;
  const std::int64_t count = config.limit > 0 ? std::min(config.limit, (*data)->size()) : (*data)->size();
  for (std::int64_t i = 0; i < count; ++i) {
    const auto record = (*data)->read(i);
    if (!record) return troupe::fail(record.error());
    const auto line = render_chat(record->conversation);
    if (!line) return troupe::fail(line.error());
    lines.push_back(*line);
  }
  auto tokenizer = train_vocabulary(lines, {.size = config.vocabulary});
  if (!tokenizer) return troupe::fail(tokenizer.error());
  const ModelConfig model = shape_of(config, *tokenizer);
  const ProcessorConfig pictures{.patch = kPatch, .max_pixels = config.max_pixels};
  return Preparation{std::move(*tokenizer), pictures, model};
}

}  // namespace qwen_vl
