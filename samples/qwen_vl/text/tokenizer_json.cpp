// Reads the tokenizer.json of Hugging Face.
#include <nlohmann/json.hpp>

#include <troupe/base/text.hpp>

#include "tokenizer_files.hpp"

namespace qwen_vl {

using nlohmann::json;
using troupe::Errc;
using troupe::text;

namespace {

/// Walks a document; knows the file's name and the place in it for every complaint.
class JsonReader {
 public:
  explicit JsonReader(const std::string& name) : draft_(name) {}

  TokenizerParts read(const json& document) {
    if (!document.is_object()) draft_.bad(text("expected an object, got ", document.type_name()));
    const json& model = object(document, "model", "model");
    read_model_options(model);
    read_normalizer(document);
    read_pre_tokenizer(document);
    read_decoder(document);
    for (const auto& [key, id] : object(model, "vocab", "model.vocab").items()) {
      const bool plain = id.is_number_unsigned() && id.get<std::uint64_t>() <= 0x7FFFFFFF;   // a place costs time: only for a complaint
      draft_.token(key, plain ? id.get<std::int64_t>() : integer(id, text("model.vocab '", key, "'")));
    }
    read_added(document);
    draft_.seal();
    read_merges(model);
    return std::move(draft_.parts());
  }

 private:
  const json& object(const json& parent, const char* key, const char* place) const {
    const auto at = parent.find(key);
    if (at == parent.end()) draft_.bad(text("no ", place));
    if (!at->is_object()) draft_.bad(text(place, ": expected an object, got ", at->type_name()));
    return *at;
  }
  std::int64_t integer(const json& value, const std::string& place) const {
    if (!value.is_number_integer()) draft_.bad(text(place, ": expected an integer, got ", brief(value)));
    if (value.is_number_unsigned() && value.get<std::uint64_t>() > 0x7FFFFFFFFFFFFFFF) draft_.bad(text(place, ": ", brief(value), " is too large"));
    return value.get<std::int64_t>();
  }
  std::string string(const json& parent, const char* key, const std::string& place) const {
    const auto at = parent.find(key);
    if (at == parent.end() || !at->is_string()) draft_.bad(text(place, ".", key, ": expected a string, got ", at == parent.end() ? "nothing" : brief(*at)));
    return at->get<std::string>();
  }
  /// A flag that may be absent or null.
  bool flag(const json& parent, const char* key, bool otherwise, const std::string& place) const {
    const auto at = parent.find(key);
    if (at == parent.end() || at->is_null()) return otherwise;
    if (!at->is_boolean()) draft_.bad(text(place, ".", key, ": expected true or false, got ", brief(*at)));
    return at->get<bool>();
  }
  static std::string brief(const json& value) {
    std::string out = value.dump(-1, ' ', false, json::error_handler_t::replace);
    return out.size() > 60 ? out.substr(0, 60) + "..." : out;
  }
  [[noreturn]] void unknown(const std::string& place, const json& value, const char* known) const {
    draft_.bad(text(place, " is ", value.dump(-1, ' ', false, json::error_handler_t::replace), "; this program has ", known), Errc::kUnavailable);
  }

  void read_model_options(const json& model) {
    if (model.contains("type") && model["type"] != "BPE") unknown("model.type", model["type"], "BPE");
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      const auto at = model.find(key);
      if (at != model.end() && !at->is_null() && *at != "") unknown(text("model.", key), *at, "none");
    }
    const auto dropout = model.find("dropout");
    if (dropout != model.end() && !dropout->is_null() && *dropout != 0.0) unknown("model.dropout", *dropout, "none");
    draft_.parts().whole_first = flag(model, "ignore_merges", false, "model");
  }

  void read_normalizer(const json& document) {
    draft_.parts().normalize = false;
    const auto at = document.find("normalizer");
    if (at == document.end() || at->is_null()) return;
    const json one = at->is_object() && at->value("type", json()) == "Sequence" ? at->value("normalizers", json()) : json::array({*at});
    for (const json& step : one.is_array() ? one : json::array({one})) {
      if (!step.is_object() || step.value("type", json()) != "NFC") unknown("normalizer", *at, "NFC or null");
      draft_.parts().normalize = true;
    }
  }

  /// ByteLevel alone (GPT-2's pattern), or Split by a known pattern and ByteLevel without one.
  void read_pre_tokenizer(const json& document) {
    const auto at = document.find("pre_tokenizer");
    const json whole = at == document.end() ? json() : *at;
    constexpr const char* kKnown = "ByteLevel, or a Sequence of Split (an isolated regex) and ByteLevel";
    const auto is = [](const json& step, const char* type) { return step.is_object() && step.value("type", json()) == type; };
    const json steps = is(whole, "Sequence") ? whole.value("pretokenizers", json()) : json::array({whole});
    if (!steps.is_array() || steps.empty() || steps.size() > 2 || !is(steps.back(), "ByteLevel")) unknown("pre_tokenizer", whole, kKnown);
    if (flag(steps.back(), "add_prefix_space", true, "pre_tokenizer ByteLevel")) unknown("pre_tokenizer", whole, "add_prefix_space=false");
    const bool own_pattern = flag(steps.back(), "use_regex", true, "pre_tokenizer ByteLevel");
    if (own_pattern != (steps.size() == 1)) unknown("pre_tokenizer", whole, kKnown);
    draft_.parts().split = own_pattern ? Split::kGpt2 : read_split(steps.front(), whole);
  }

  Split read_split(const json& step, const json& whole) const {
    const bool isolated = step.is_object() && step.value("type", json()) == "Split" && step.value("behavior", json()) == "Isolated";
    if (!isolated || flag(step, "invert", false, "pre_tokenizer Split")) unknown("pre_tokenizer", whole, "an isolated Split");
    const json pattern = step.value("pattern", json());
    if (!pattern.is_object()) draft_.bad(text("pre_tokenizer Split.pattern: expected an object, got ", brief(pattern)));
    const auto split = split_of(string(pattern, "Regex", "pre_tokenizer Split.pattern"));
    if (!split) unknown("pre_tokenizer Split.pattern", pattern, "the patterns of Qwen2, cl100k and GPT-2");
    return *split;
  }

  void read_decoder(const json& document) const {
    const auto at = document.find("decoder");
    if (at == document.end() || at->is_null()) return;
    if (!at->is_object() || at->value("type", json()) != "ByteLevel") unknown("decoder", *at, "ByteLevel");
  }

  void read_added(const json& document) {
    const auto at = document.find("added_tokens");
    if (at == document.end() || at->is_null()) return;
    if (!at->is_array()) draft_.bad(text("added_tokens: expected an array, got ", at->type_name()));
    for (std::size_t i = 0; i < at->size(); ++i) {
      const std::string place = text("added_tokens[", i, "]");
      const json& entry = (*at)[i];
      if (!entry.is_object()) draft_.bad(text(place, ": expected an object, got ", brief(entry)));
      draft_.added(added_token(entry, integer(entry.value("id", json()), place + ".id"), place));
    }
  }

  AddedToken added_token(const json& entry, std::int64_t id, const std::string& place) const {
    AddedToken token{.content = string(entry, "content", place), .id = id};
    for (const char* key : {"single_word", "lstrip", "rstrip"}) {
      if (flag(entry, key, false, place)) unknown(place, entry, "only added tokens that take nothing beside them (single_word, lstrip and rstrip false)");
    }
    token.special = flag(entry, "special", false, place);
    token.normalized = flag(entry, "normalized", !token.special, place);
    return token;
  }

  void read_merges(const json& model) {
    const auto at = model.find("merges");
    if (at == model.end() || !at->is_array()) draft_.bad(text("model.merges: expected an array, got ", at == model.end() ? "nothing" : at->type_name()));
    draft_.parts().merges.reserve(at->size());
    for (std::size_t i = 0; i < at->size(); ++i) {
      const json& entry = (*at)[i];
      const Place place{"model.merges[", i, "]"};
      if (entry.is_string()) {
        draft_.merge_line(entry.get_ref<const std::string&>(), place);
      } else if (entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_string()) {
        draft_.merge(entry[0].get_ref<const std::string&>(), entry[1].get_ref<const std::string&>(), place);
      } else {
        draft_.bad(text("model.merges[", i, "]: expected \"a b\" or [\"a\", \"b\"], got ", brief(entry)));
      }
    }
  }

  PartsDraft draft_;
};

}  // namespace

TokenizerParts parts_of_json(std::string_view bytes, const std::string& name) {
  json document;
  try {
    document = json::parse(bytes);
  } catch (const json::exception& error) {
    throw troupe::Exception({Errc::kBadData, text(name, ": ", error.what())});
  }
  return JsonReader(name).read(document);
}

}  // namespace qwen_vl
