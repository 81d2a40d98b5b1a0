#include "page.hpp"

#include <cstdio>

#include <troupe/base/text.hpp>

namespace stamps {
namespace {

using troupe::text;

std::string rounded(double value, int digits) {
  char out[40];
  std::snprintf(out, sizeof out, "%.*f", digits, value);
  return out;
}

std::vector<troupe::ReportText> figures_of(const Outcome& outcome) {
  std::vector<troupe::ReportText> out = {{"steps", text(outcome.losses.size(), outcome.stopped ? " (stopped)" : "")},
                                         {"training", rounded(outcome.seconds, 1) + " s"},
                                         {"patches per second", rounded(outcome.per_second(outcome.patches), 0)},
                                         {"tokens per second", rounded(outcome.per_second(outcome.tokens), 0)}};
  if (outcome.held_out) {
    out.push_back({"held-out loss", rounded(outcome.held_out->with_pictures, 3)});
    out.push_back({"with shuffled pictures", rounded(outcome.held_out->shuffled, 3)});
  }
  return out;
}

/// Those whose words the model has; another caption it can't say.
troupe::ReportPictures pictures_of(const Outcome& outcome, bool seen) {
  troupe::ReportPictures out{.title = seen ? "Captions: pictures it was trained on" : "Captions: pictures it never saw"};
  for (const auto& one : outcome.captions) {
    if (one.seen == seen && one.known) out.pictures.push_back({one.thumbnail, {{"model", one.generated}, {"people", one.truth}}});
  }
  return out;
}

}  // namespace

troupe::ReportCurve loss_curve(const Outcome& outcome) {
  troupe::ReportCurve out{.title = "Loss", .unit = "nats per token", .values = outcome.losses};
  if (const auto& held = outcome.held_out) {
    out.levels = {{"unigram", held->unigram}, {"no pictures", held->without}, {"shuffled", held->shuffled}, {"held out", held->with_pictures}};
  }
  return out;
}

troupe::ReportPage page_of(const Config& config, const Outcome& outcome) {
  troupe::ReportPage out{.title = "Stamps: a vision-language model, each module in its own layout"};
  out.subtitle = text("vision {", config.vision, "}, language {", config.language, "}, batch ", config.batch);
  out.figures = figures_of(outcome);
  if (!outcome.losses.empty()) {
    const std::int64_t before = std::ssize(outcome.losses) - std::ssize(outcome.patches_per_second);   // steps of the run that this one resumed
    out.curves = {loss_curve(outcome), {.title = "Throughput", .unit = "patches per second", .values = outcome.patches_per_second, .first_step = before + 1}};
  }
  out.pictures = {pictures_of(outcome, true), pictures_of(outcome, false)};
  out.stages = outcome.stages;
  for (const auto& [edge, bytes] : outcome.bytes_by_edge) out.edges.push_back({edge, bytes.referenced, bytes.copied});
  out.settings = {{"data", config.data},
                  {"steps", text(config.steps)},
                  {"batch", text(config.batch)},
                  {"micro_batches", text(config.micro_batches)},
                  {"seed", text(config.seed)},
                  {"learning_rate", text(config.learning_rate)},
                  {"width, heads, layers", text(config.width, ", ", config.heads, ", ", config.layers)}};
  if (outcome.held_out) {
    out.notes = {"Held out: loss on pictures that were not trained on. Shuffled: each of those captions with another one's picture; the difference is what the model sees. "
                 "No pictures: the encoder gets none. Unigram: what counting words reaches.",
                 "Pictures are shown as the model gets them, 64 x 64. Captions that hold a word outside the vocabulary are left out here; results.json has all."};
  }
  return out;
}

}  // namespace stamps
