#include "train_config.hpp"

#include <troupe/base/text.hpp>

#include "layout_flags.hpp"

namespace qwen_vl {

using troupe::Errc;
using troupe::Result;
using troupe::text;

samples::Settings settings_of(TrainConfig& c) {
  return {{"data", {&c.data, "JSON Lines (LLaVA or ShareGPT form), WebDataset tar, or a folder of pictures with captions beside them"}},
          {"model", {&c.model, "checkpoint folder to start from; empty: a small new model"}},
          {"out", {&c.out, "folder for the model, the checkpoints and the reports"}},
          {"question", {&c.question, "asked where a picture has only a caption"}},
          {"steps", {&c.steps, "optimizer steps"}},
          {"batch", {&c.batch, "conversations per step"}},
          {"micro_batches", {&c.micro_batches, "parts a batch is cut into"}},
          {"limit", {&c.limit, "only the first so many records; 0: all"}},
          {"seed", {&c.seed, "of initial values and order"}},
          {"log_every", {&c.log_every, "steps between lines when there is no terminal"}},
          {"save_every", {&c.save_every, "steps between checkpoints that --resume goes on from; 0: none"}},
          {"max_tokens", {&c.max_tokens, "a longer conversation is refused; 0: any length"}},
          {"shown", {&c.shown, "answers generated at the end, for the report"}},
          {"vision_learning_rate", {&c.vision_learning_rate, "peak, of the vision tower"}},
          {"language_learning_rate", {&c.language_learning_rate, "peak, of the language model"}},
          {"weight_decay", {&c.weight_decay, "decoupled"}},
          {"clip", {&c.clip, "largest global gradient norm; 0: none"}},
          {"rank_gib", {&c.rank_gib, "memory that a rank may hold, GiB; 0: an even part of this machine's"}},
          {"vision", {&c.vision, "mesh of the vision tower, axes dp and sp, e.g. dp=2,sp=4"}},
          {"language", {&c.language, "mesh of the language model, axes dp and tp, e.g. tp=2"}},
          {"dtype", {&c.dtype, "float32, bfloat16 or float64"}},
          {"resume", {&c.resume, "go on from the newest checkpoint in out"}},
          {"width", {&c.width, "of a new model, a multiple of 32"}},
          {"layers", {&c.layers, "of each module of a new model"}},
          {"vocabulary", {&c.vocabulary, "tokens of a new model"}},
          {"max_pixels", {&c.max_pixels, "of a picture, for a new model"}}};
}

Result<void> check(const TrainConfig& c) {
  for (const auto& [name, value, least] : {std::tuple{"steps", c.steps, 1L}, {"batch", c.batch, 1L}, {"micro_batches", c.micro_batches, 1L}, {"limit", c.limit, 0L},
                                           {"log_every", c.log_every, 1L}, {"save_every", c.save_every, 0L}, {"max_tokens", c.max_tokens, 0L}, {"shown", c.shown, 0L},
                                           {"width", c.width, 32L}, {"layers", c.layers, 1L}, {"vocabulary", c.vocabulary, 300L}, {"max_pixels", c.max_pixels, 56L * 56}}) {
    if (value < least) return troupe::fail(Errc::kInvalidArgument, text(name, " must be >= ", least, ", got ", value));
  }
  for (const auto& [name, value] : {std::pair{"vision_learning_rate", c.vision_learning_rate}, {"language_learning_rate", c.language_learning_rate}}) {
    if (!(value > 0)) return troupe::fail(Errc::kInvalidArgument, text(name, " must be > 0, got ", value));
  }
  if (!(c.clip >= 0) || !(c.weight_decay >= 0)) return troupe::fail(Errc::kInvalidArgument, text("clip and weight_decay must be >= 0, got ", c.clip, " and ", c.weight_decay));
  if (!(c.rank_gib >= 0)) return troupe::fail(Errc::kInvalidArgument, text("rank_gib must be >= 0, got ", c.rank_gib));
  if (c.width % 32 != 0) return troupe::fail(Errc::kInvalidArgument, text("width must be a multiple of 32, got ", c.width));
  if (auto layout = parse_layout(c.vision, c.language, c.dtype); !layout) return troupe::fail(layout.error());
  return {};
}

}  // namespace qwen_vl
