// Fine-tunes, tries and proves Qwen2.5-VL in any layout: see README.md.
#include <cstdio>
#include <functional>
#include <map>
#include <string>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "commands.hpp"
#include "common/stop.hpp"

namespace {

constexpr int kFailed = 1, kUsage = 2, kInterrupted = 130;   // 128 + SIGINT, as a shell says it

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

int finish(const troupe::Result<std::string>& line) {
  if (!line) return complain(line.error());
  std::printf("%s\n", line->c_str());
  return 0;
}

template <class Command>
void add_layout(CLI::App* sub, Command& c) {
  sub->add_option("--vision", c.vision, "mesh of the vision tower, axes dp and sp: dp=2,sp=4 (last axis fastest)");
  sub->add_option("--language", c.language, "mesh of the language model, axes dp and tp: tp=2");
  sub->add_option("--dtype", c.dtype, "float64, float32 or bfloat16")->capture_default_str();
}

/// One subcommand: its options, and what to do when it was named.
using Run = std::function<int()>;

Run add_verify(CLI::App& app, qwen_vl::VerifyCommand& c) {
  CLI::App* sub = app.add_subcommand("verify", "trains some steps on one batch from a file and writes loss, picture tokens, logits, all gradients and parameters");
  sub->add_option("--model", c.model, "checkpoint folder: config.json and *.safetensors")->required();
  sub->add_option("--batch", c.batch,
                  "safetensors file: input_ids, labels [B,S] i64; optional attention_mask, pixel_values [patches, values], image_grid_thw [n,3], "
                  "pixel_values_videos, video_grid_thw, second_per_grid_ts")
      ->required();
  sub->add_option("--out", c.out, "safetensors file to write")->required();
  add_layout(sub, c);
  sub->add_option("--steps", c.steps, "AdamW steps on the batch")->capture_default_str();
  sub->add_option("--micro-batches", c.micro_batches, "parts the batch is cut into")->capture_default_str();
  sub->add_option("--lr", c.learning_rate, "learning rate")->capture_default_str();
  sub->add_option("--weight-decay", c.weight_decay, "decoupled decay")->capture_default_str();
  sub->add_option("--video-positions", c.video_positions, "as transformers of version 5 or 4 counts a video's time")->check(CLI::IsMember({"5", "4"}))->capture_default_str();
  return [&c] { return finish(qwen_vl::run(c)); };
}

Run add_generate(CLI::App& app, qwen_vl::GenerateCommand& c) {
  CLI::App* sub = app.add_subcommand("generate", "answers a prompt about pictures: the text on stderr as it is made, a JSON line on stdout");
  sub->add_option("--model", c.model, "checkpoint folder with tokenizer and preprocessor_config.json")->required();
  sub->add_option("--image", c.images, "PNG, JPEG, BMP or GIF; may be given several times");
  sub->add_option("--prompt", c.prompt, "what the user says behind the pictures")->required();
  sub->add_option("--system", c.system, "system turn; default: the chat template's");
  add_layout(sub, c);
  sub->add_option("--max-tokens", c.max_tokens, "at most so many")->capture_default_str();
  sub->add_option("--temperature", c.temperature, "0: the likeliest token")->capture_default_str();
  sub->add_option("--top-k", c.top_k, "only the k likeliest; 0: all")->capture_default_str();
  sub->add_option("--top-p", c.top_p, "only the likeliest of this probability together")->capture_default_str();
  sub->add_option("--seed", c.seed, "of the draws")->capture_default_str();
  return [&c] { return finish(qwen_vl::run(c)); };
}

Run add_eval(CLI::App& app, qwen_vl::EvalCommand& c) {
  CLI::App* sub = app.add_subcommand("eval", "mean loss over the answers of a data set");
  sub->add_option("--model", c.model, "checkpoint folder")->required();
  sub->add_option("--data", c.data, "as of train")->required();
  sub->add_option("--question", c.question, "asked where a picture has only a caption")->capture_default_str();
  add_layout(sub, c);
  sub->add_option("--batch", c.batch, "conversations at a time")->check(CLI::PositiveNumber)->capture_default_str();
  sub->add_option("--limit", c.limit, "only the first so many; 0: all")->capture_default_str();
  return [&c] { return finish(qwen_vl::run(c)); };
}

/// Flags of `train` by name; they win over the file.
struct TrainFlags {
  qwen_vl::TrainConfig config;
  std::string file;
  std::map<std::string, std::string> given;
};

int train(CLI::App* sub, TrainFlags& flags) {
  const auto settings = qwen_vl::settings_of(flags.config);
  if (!flags.file.empty()) {
    if (auto read = samples::read_settings(flags.file, settings); !read) return complain(read.error());
  }
  for (const auto& [name, text] : flags.given) {
    if (sub->count("--" + name) == 0) continue;
    const bool is_switch = std::holds_alternative<bool*>(settings.at(name).target) && text.empty();
    if (auto ok = samples::set(settings, name, is_switch ? "true" : text); !ok) return complain(ok.error());
  }
  samples::StopOnSignal stop;
  const auto line = qwen_vl::run(flags.config, stop.token());
  const int code = finish(line);
  return code == 0 && stop.requested() ? kInterrupted : code;
}

Run add_train(CLI::App& app, TrainFlags& flags) {
  CLI::App* sub = app.add_subcommand("train", "fine-tunes on conversations with pictures; each flag is a key of the TOML file, too");
  sub->add_option("--config", flags.file, "TOML file; see qwen_vl.toml");
  for (const auto& [name, setting] : qwen_vl::settings_of(flags.config)) {
    auto* option = sub->add_option("--" + name, flags.given[name], setting.help);
    if (std::holds_alternative<bool*>(setting.target)) option->expected(0, 1);
  }
  return [sub, &flags] { return train(sub, flags); };
}

int run(int argc, char** argv) {
  CLI::App app{"Qwen2.5-VL: each module in its own layout."};
  app.require_subcommand(1);
  TrainFlags flags;
  qwen_vl::VerifyCommand verify;
  qwen_vl::GenerateCommand generate;
  qwen_vl::EvalCommand eval;
  const std::map<std::string, Run> commands = {{"train", add_train(app, flags)}, {"generate", add_generate(app, generate)}, {"eval", add_eval(app, eval)}, {"verify", add_verify(app, verify)}};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  return commands.at(app.get_subcommands().front()->get_name())();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (...) {  // out of memory, LibTorch: what is left of the program's own code that throws
    return complain(troupe::error_from_current_exception());
  }
}
