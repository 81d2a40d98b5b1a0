#include "config.hpp"

#include <algorithm>
#include <fstream>
#include <numeric>
#include <sstream>

#include <nlohmann/json.hpp>

#include <troupe/base/text.hpp>

namespace qwen_vl {
namespace {

using nlohmann::json;
using troupe::Errc;
using troupe::Result;
using troupe::text;

/// One object of the file with what messages need. The first fault is kept; later reads go on and change nothing.
class Reader {
 public:
  Reader(const json& object, std::string where, troupe::Error& error) : object_(object), where_(std::move(where)), error_(error) {}

  [[nodiscard]] bool has(const char* key) const { return object_.contains(key) && !object_.at(key).is_null(); }

  /// A whole number, or a list of equal ones (a patch's height and width).
  void read(const char* key, std::int64_t& to) {
    if (!has(key)) return;
    const json* value = &object_.at(key);
    if (value->is_array() && !value->empty() && std::ranges::all_of(*value, [&](const json& one) { return one == value->front(); })) value = &value->front();
    if (!value->is_number_integer()) return wrong(key, "a whole number", *value);
    to = value->get<std::int64_t>();
  }
  /// A whole number, or the first of a list of them.
  void read_first(const char* key, std::int64_t& to) {
    if (!has(key)) return;
    const json& value = object_.at(key);
    const json& first = value.is_array() && !value.empty() ? value.front() : value;
    if (!first.is_number_integer()) return wrong(key, "a whole number or a list of them", value);
    to = first.get<std::int64_t>();
  }
  void read(const char* key, double& to) {
    if (!has(key)) return;
    if (!object_.at(key).is_number()) return wrong(key, "a number", object_.at(key));
    to = object_.at(key).get<double>();
  }
  void read(const char* key, bool& to) {
    if (!has(key)) return;
    if (!object_.at(key).is_boolean()) return wrong(key, "true or false", object_.at(key));
    to = object_.at(key).get<bool>();
  }
  void read(const char* key, std::vector<std::int64_t>& to) {
    if (!has(key)) return;
    const json& value = object_.at(key);
    const auto whole = [](const json& one) { return one.is_number_integer(); };
    if (!value.is_array() || !std::ranges::all_of(value, whole)) return wrong(key, "a list of whole numbers", value);
    to = value.get<std::vector<std::int64_t>>();
  }
  void require(const char* key) {
    if (!has(key)) set(text(where_, ": '", key, "' is missing"));
  }
  /// Refuses any value but `only`.
  void only(const char* key, const json& only) {
    if (has(key) && object_.at(key) != only) wrong(key, only.dump().c_str(), object_.at(key));
  }
  void one_of(const char* key, std::initializer_list<const char*> allowed) {
    if (has(key) && std::ranges::none_of(allowed, [&](const char* one) { return object_.at(key) == one; })) {
      wrong(key, text("one of ", json(std::vector<std::string>(allowed.begin(), allowed.end())).dump()).c_str(), object_.at(key));
    }
  }
  /// The object below `key`, or this one when there is none.
  [[nodiscard]] Reader below(const char* key) const {
    if (!has(key)) return *this;
    if (!object_.at(key).is_object()) {
      Reader(*this).wrong(key, "an object", object_.at(key));
      return *this;
    }
    return {object_.at(key), where_ + "." + key, error_};
  }

 private:
  void wrong(const char* key, const char* expected, const json& got) { set(text(where_, ": '", key, "' must be ", expected, ", got ", got.dump())); }
  void set(std::string message) {
    if (error_.message.empty()) error_ = {.code = Errc::kInvalidArgument, .message = std::move(message)};
  }
  const json& object_;
  std::string where_;
  troupe::Error& error_;
};

void read_vision(Reader in, ModelConfig& out) {
  VisionConfig& vision = out.vision;
  in.require("hidden_size");
  in.read("depth", vision.depth);
  in.read("hidden_size", vision.hidden);
  in.read("num_heads", vision.heads);
  in.read("intermediate_size", vision.intermediate);
  in.read("out_hidden_size", vision.out_hidden);
  in.read("in_chans", vision.channels);   // the published files
  in.read("in_channels", vision.channels);
  in.read("patch_size", vision.patch);
  in.read("spatial_patch_size", vision.patch);
  in.read("temporal_patch_size", vision.temporal_patch);
  in.read("spatial_merge_size", vision.merge);
  in.read("window_size", vision.window);
  in.read("fullatt_block_indexes", vision.full_attention);
  in.read("tokens_per_second", out.tokens_per_second);
  in.read("initializer_range", vision.initial_deviation);
  in.only("hidden_act", "silu");
  Reader rope = in.below("rope_parameters");
  if (in.has("rope_parameters")) {
    rope.read("rope_theta", vision.rope_theta);
    rope.only("rope_type", "axial");
  }
}

void read_language(Reader in, LanguageConfig& language) {
  in.require("hidden_size");
  in.read("num_hidden_layers", language.layers);
  in.read("hidden_size", language.hidden);
  in.read("num_attention_heads", language.heads);
  language.kv_heads = language.heads;
  in.read("num_key_value_heads", language.kv_heads);
  if (language.heads > 0) language.head_dim = language.hidden / language.heads;
  in.only("head_dim", language.head_dim);   // transformers has no other for this model
  in.read("intermediate_size", language.intermediate);
  in.read("vocab_size", language.vocabulary);
  in.read("rms_norm_eps", language.epsilon);
  in.read("initializer_range", language.initial_deviation);
  in.only("hidden_act", "silu");
  in.only("use_sliding_window", false);
  in.only("attention_dropout", 0.0);
  in.read("rope_theta", language.rope_theta);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!in.has(key)) continue;
    Reader rope = in.below(key);
    rope.require("mrope_section");
    rope.read("mrope_section", language.sections);
    rope.read("rope_theta", language.rope_theta);
    // "default" is what transformers 5 makes of "mrope"
    rope.one_of("type", {"mrope", "default"});
    rope.one_of("rope_type", {"mrope", "default"});
  }
}

void read_tokens(Reader in, TokenIds& tokens) {
  in.below("text_config").read("bos_token_id", tokens.end_of_text);   // the published files call it so
  in.below("text_config").read_first("eos_token_id", tokens.end_of_turn);
  in.read("image_token_id", tokens.image);
  in.read("video_token_id", tokens.video);
  in.read("vision_start_token_id", tokens.vision_start);
  in.read("vision_end_token_id", tokens.vision_end);
}

Result<void> positive(std::initializer_list<std::pair<const char*, std::int64_t>> sizes) {
  for (const auto& [name, size] : sizes) {
    if (size < 1) return troupe::fail(Errc::kInvalidArgument, text("config: ", name, " must be >= 1, got ", size));
  }
  return {};
}

Result<void> divides(const char* what, std::int64_t whole, const char* by, std::int64_t part) {
  if (whole % part == 0) return {};
  return troupe::fail(Errc::kInvalidArgument, text("config: ", what, " ", whole, " must be divisible by ", by, " ", part));
}

Result<void> check(const VisionConfig& vision) {
  auto ok = positive({{"vision depth", vision.depth}, {"vision hidden_size", vision.hidden}, {"vision num_heads", vision.heads},
                      {"vision intermediate_size", vision.intermediate}, {"out_hidden_size", vision.out_hidden}, {"in_channels", vision.channels},
                      {"patch_size", vision.patch}, {"temporal_patch_size", vision.temporal_patch}, {"spatial_merge_size", vision.merge},
                      {"window_size / spatial_merge_size / patch_size", vision.window_tokens()}});
  if (ok) ok = divides("vision hidden_size", vision.hidden, "num_heads", vision.heads);
  if (ok) ok = divides("vision head dim", vision.head_dim(), "4 (two axes of pairs):", 4);
  return ok;
}

Result<void> check(const LanguageConfig& language) {
  auto ok = positive({{"num_hidden_layers", language.layers}, {"hidden_size", language.hidden}, {"num_attention_heads", language.heads},
                      {"num_key_value_heads", language.kv_heads}, {"head_dim", language.head_dim}, {"intermediate_size", language.intermediate},
                      {"vocab_size", language.vocabulary}});
  if (ok) ok = divides("num_attention_heads", language.heads, "num_key_value_heads", language.kv_heads);
  if (ok) ok = divides("hidden_size", language.hidden, "num_attention_heads", language.heads);
  if (!ok) return ok;
  const std::int64_t sum = std::accumulate(language.sections.begin(), language.sections.end(), std::int64_t{0});
  if (language.sections.size() != 3 || sum * 2 != language.head_dim || std::ranges::any_of(language.sections, [](std::int64_t one) { return one < 0; })) {
    return troupe::fail(Errc::kInvalidArgument, text("config: mrope_section needs 3 numbers that add up to head_dim / 2 = ", language.head_dim / 2, ", got ",
                                                     language.sections.size(), " that add up to ", sum));
  }
  return {};
}

/// transformers refuses "2.0" where it wants an integer.
json whole_if_whole(double value) {
  const auto whole = static_cast<std::int64_t>(value);
  return static_cast<double>(whole) == value ? json(whole) : json(value);
}

}  // namespace

Result<void> check(const ModelConfig& config) {
  if (auto ok = check(config.vision); !ok) return ok;
  if (auto ok = check(config.language); !ok) return ok;
  if (config.vision.out_hidden != config.language.hidden) {
    return troupe::fail(Errc::kInvalidArgument, text("config: the vision tower gives out_hidden_size ", config.vision.out_hidden,
                                                     ", the language model takes hidden_size ", config.language.hidden));
  }
  return {};
}

Result<ModelConfig> parse_config(const std::string& content, const std::string& name) {
  const json root = json::parse(content, nullptr, false);
  if (!root.is_object()) return troupe::fail(Errc::kBadData, text(name, ": expected a JSON object, got ", root.is_discarded() ? "text that is not JSON" : root.type_name()));
  ModelConfig out;
  out.tokens_per_second = 4;       // what transformers takes where a file does not say
  out.language.epsilon = 1e-5;
  troupe::Error error;
  Reader in(root, name, error);
  in.require("vision_config");
  read_vision(in.below("vision_config"), out);
  read_language(in.below("text_config"), out.language);
  // inside text_config in files of transformers 4.5x
  in.below("text_config").read("tie_word_embeddings", out.language.tied);
  in.read("tie_word_embeddings", out.language.tied);
  read_tokens(in, out.tokens);
  if (!error.message.empty()) return troupe::fail(error);
  if (auto ok = check(out); !ok) return troupe::fail(ok.error().code, text(name, ": ", ok.error().message));
  return out;
}

Result<ModelConfig> read_config(const std::string& folder) {
  const std::string path = folder + "/config.json";
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  if (!file || !(content << file.rdbuf())) return troupe::fail(Errc::kIo, text(path, ": can't be read; a checkpoint folder has config.json and *.safetensors"));
  return parse_config(content.str(), path);
}

std::string config_json(const ModelConfig& config) {
  const VisionConfig& vision = config.vision;
  const LanguageConfig& language = config.language;
  json out = {{"architectures", {"Qwen2_5_VLForConditionalGeneration"}}, {"model_type", "qwen2_5_vl"}, {"hidden_act", "silu"},
              {"num_hidden_layers", language.layers}, {"hidden_size", language.hidden}, {"num_attention_heads", language.heads},
              {"num_key_value_heads", language.kv_heads}, {"intermediate_size", language.intermediate}, {"vocab_size", language.vocabulary},
              {"rms_norm_eps", language.epsilon}, {"initializer_range", language.initial_deviation}, {"tie_word_embeddings", language.tied},
              {"use_sliding_window", false}, {"max_position_embeddings", 128000}, {"rope_theta", language.rope_theta},
              {"rope_scaling", {{"type", "mrope"}, {"mrope_section", language.sections}}}, {"torch_dtype", "float32"},
              {"image_token_id", config.tokens.image}, {"video_token_id", config.tokens.video}, {"vision_start_token_id", config.tokens.vision_start},
              {"vision_end_token_id", config.tokens.vision_end}, {"bos_token_id", config.tokens.end_of_text}, {"eos_token_id", config.tokens.end_of_turn}};
  // no pad_token_id: transformers would keep that token's embedding from learning
  out["vision_config"] = {{"model_type", "qwen2_5_vl"}, {"depth", vision.depth}, {"hidden_size", vision.hidden}, {"num_heads", vision.heads},
                          {"intermediate_size", vision.intermediate}, {"out_hidden_size", vision.out_hidden}, {"in_channels", vision.channels},
                          {"patch_size", vision.patch}, {"temporal_patch_size", vision.temporal_patch}, {"spatial_merge_size", vision.merge},
                          {"window_size", vision.window}, {"fullatt_block_indexes", vision.full_attention}, {"hidden_act", "silu"},
                          {"tokens_per_second", whole_if_whole(config.tokens_per_second)}, {"initializer_range", vision.initial_deviation}};
  return out.dump(2) + "\n";
}

}  // namespace qwen_vl
