// Fine-tunes, tries and proves Qwen2.5-VL in any layout: see README.md.
#include <cstdio>
#include <string>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "commands.hpp"

namespace {

constexpr int kFailed = 1, kUsage = 2;

/// Bad input is the user's to mend; everything else went wrong at run time.
int complain(const troupe::Error& error) {
  std::fprintf(stderr, "qwen_vl: %s\n", error.describe().c_str());
  const troupe::Error* root = &error;
  while (root->cause) root = root->cause.get();
  switch (root->code) {
    case troupe::Errc::kInvalidArgument:
    case troupe::Errc::kBadData:
    case troupe::Errc::kMismatch:
    case troupe::Errc::kIo: return kUsage;
    default: return kFailed;
  }
}

void add_verify(CLI::App& app, qwen_vl::VerifyCommand& c) {
  CLI::App* sub = app.add_subcommand("verify", "trains some steps on one batch from a file and writes loss, picture tokens, logits, all gradients and parameters");
  sub->add_option("--model", c.model, "checkpoint folder: config.json and *.safetensors")->required();
  sub->add_option("--batch", c.batch,
                  "safetensors file: input_ids, labels [B,S] i64; optional attention_mask, pixel_values [patches, values], image_grid_thw [n,3], "
                  "pixel_values_videos, video_grid_thw, second_per_grid_ts")
      ->required();
  sub->add_option("--out", c.out, "safetensors file to write")->required();
  sub->add_option("--vision", c.vision, "mesh of the vision tower, axes dp and sp: dp=2,sp=4 (last axis fastest)");
  sub->add_option("--language", c.language, "mesh of the language model, axes dp and tp: tp=2");
  sub->add_option("--dtype", c.dtype, "float64, float32 or bfloat16")->capture_default_str();
  sub->add_option("--steps", c.steps, "AdamW steps on the batch")->capture_default_str();
  sub->add_option("--micro-batches", c.micro_batches, "parts the batch is cut into")->capture_default_str();
  sub->add_option("--lr", c.learning_rate, "learning rate")->capture_default_str();
  sub->add_option("--weight-decay", c.weight_decay, "decoupled decay")->capture_default_str();
  sub->add_option("--video-positions", c.video_positions, "as transformers of version 5 or 4 counts a video's time")->check(CLI::IsMember({"5", "4"}))->capture_default_str();
}

int run(int argc, char** argv) {
  CLI::App app{"Qwen2.5-VL: each module in its own layout."};
  app.require_subcommand(1);
  qwen_vl::VerifyCommand verify;
  add_verify(app, verify);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  const auto line = qwen_vl::run(verify);
  if (!line) return complain(line.error());
  std::printf("%s\n", line->c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (...) {  // out of memory, LibTorch: what is left of the program's own code that throws
    return complain(troupe::error_from_current_exception());
  }
}
