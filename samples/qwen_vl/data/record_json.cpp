// parse_record(): JSON to Record.
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <type_traits>
#include <utility>

#include <nlohmann/json.hpp>

#include <troupe/base/text.hpp>

#include "records.hpp"

namespace qwen_vl {
namespace {

using nlohmann::json;
using troupe::Errc;
using troupe::Result;
using troupe::text;

constexpr std::size_t kShown = 80;   // bytes of a wrong value that a message repeats

/// A value for a message: short, and never walked in depth.
std::string shown(const json& value) {
  if (value.is_array() || value.is_object()) return text("an ", value.type_name());
  std::string out = value.dump(-1, ' ', true);
  if (out.size() > kShown) out = out.substr(0, kShown) + "...";
  return out;
}

/// What nlohmann says, without its own tag, a whole file of echo, or the bytes that were no UTF-8.
std::string reason_of(const json::exception& error) {
  std::string out = error.what();
  if (const auto tag = out.find("] "); tag != std::string::npos) out.erase(0, tag + 2);
  if (out.size() > 3 * kShown) out = out.substr(0, 3 * kShown) + "...";
  std::ranges::replace_if(out, [](char byte) { return byte < 0x20 || byte > 0x7e; }, '?');
  return out;
}

/// One kind of what a turn shows: how texts and keys call it, and where the next one comes from.
template <class T>
struct Shown {
  const char* placeholder;            ///< "<image>"
  const char* singular;               ///< Key of the record, and type of a content part.
  const char* plural;
  std::vector<T> listed = {};         ///< Beside the conversation.
  std::size_t wanted = 0;             ///< Placeholders so far.
  std::vector<std::size_t> turns = {};   ///< Of each placeholder.
  std::vector<T> out = {};            ///< In the conversation's order.
};

class Parser {
 public:
  Parser(const std::string& where, const RecordOptions& options) : where_(where), options_(options) { out_.where = where; }

  void give(std::vector<PictureSource> pictures) {
    images_.listed = std::move(pictures);
    given_ = true;
  }

  Result<Record> parse(const json& root) {
    if (!root.is_object()) return wrong("expected a JSON object, got ", shown(root));
    Result<void> ok = read_id(root);
    if (ok && !given_) ok = read_listed(root, images_);
    if (ok) ok = read_listed(root, videos_);
    if (ok) ok = read_turns(root);
    if (ok) ok = check_count(images_);
    if (ok) ok = check_count(videos_);
    if (!ok) return troupe::fail(ok.error());
    out_.pictures = std::move(images_.out);
    out_.videos = std::move(videos_.out);
    return std::move(out_);
  }

 private:
  template <class... Parts>
  tl::unexpected<troupe::Error> wrong(const Parts&... parts) const {
    return troupe::fail(Errc::kBadData, text(where_, ": ", parts...));
  }

  /// The value under one of `keys`, null when there is none.
  Result<const json*> one_of(const json& object, std::initializer_list<const char*> keys) const {
    const json* out = nullptr;
    const char* as = nullptr;
    for (const char* key : keys) {
      const auto found = object.find(key);
      if (found == object.end() || found->is_null()) continue;
      if (out != nullptr) return wrong("both '", as, "' and '", key, "' are given; which one counts?");
      out = &*found;
      as = key;
    }
    return out;
  }

  Result<void> read_id(const json& root) {
    const auto id = root.find("id");
    if (id == root.end() || id->is_null()) return {};
    if (!id->is_string() && !id->is_number_integer()) return wrong("'id' must be a string or a whole number, got ", shown(*id));
    out_.id = id->is_string() ? id->get<std::string>() : id->dump();
    return {};
  }

  Result<PictureSource> read_one(const json& value, const char* key, const Shown<PictureSource>&) const {
    if (!value.is_string() || value.get_ref<const std::string&>().empty()) return wrong("'", key, "' must name a file, got ", shown(value));
    return PictureSource{value.get<std::string>()};
  }

  Result<VideoSource> read_one(const json& value, const char* key, const Shown<VideoSource>&) const {
    VideoSource out;
    if (value.is_string() && !value.get_ref<const std::string&>().empty()) {
      out.folder = value.get<std::string>();
      return out;
    }
    if (!value.is_array() || value.empty()) return wrong("'", key, "' must be a folder of frames or a list of frames, got ", shown(value));
    for (const json& frame : value) {
      auto one = read_one(frame, key, images_);
      if (!one) return troupe::fail(one.error());
      out.frames.push_back(std::move(*one));
    }
    return out;
  }

  /// "image": "a.png", or "image" / "images": [...].
  template <class T>
  Result<void> read_listed(const json& root, Shown<T>& kind) {
    const auto value = one_of(root, {kind.singular, kind.plural});
    if (!value) return troupe::fail(value.error());
    if (*value == nullptr) return {};
    const char* key = root.contains(kind.singular) && !root.at(kind.singular).is_null() ? kind.singular : kind.plural;
    const auto take = [&](const json& one) -> Result<void> {
      auto read = read_one(one, key, kind);
      if (!read) return troupe::fail(read.error());
      kind.listed.push_back(std::move(*read));
      return {};
    };
    if (!(*value)->is_array()) return take(**value);
    for (const json& one : **value) {
      if (auto ok = take(one); !ok) return ok;
    }
    return {};
  }

  Result<void> read_turns(const json& root) {
    const auto turns = one_of(root, {"conversations", "messages"});
    if (!turns) return troupe::fail(turns.error());
    if (*turns == nullptr) return wrong("expected 'conversations' (LLaVA, ShareGPT) or 'messages', found neither");
    if (!(*turns)->is_array() || (*turns)->empty()) return wrong("the conversation must be a list of at least one turn, got ", shown(**turns));
    for (const json& turn : **turns) {
      if (auto ok = read_turn(turn); !ok) return ok;
    }
    return {};
  }

  Result<void> read_turn(const json& turn) {
    const std::size_t number = out_.conversation.turns.size();
    if (!turn.is_object()) return wrong("turn ", number, " must be an object, got ", shown(turn));
    const auto role = one_of(turn, {"from", "role"});
    if (!role) return troupe::fail(role.error());
    const auto content = one_of(turn, {"value", "content"});
    if (!content) return troupe::fail(content.error());
    if (*role == nullptr || !(*role)->is_string()) return wrong("turn ", number, ": expected 'from' or 'role' as a string, got ", *role == nullptr ? "none" : shown(**role));
    if (*content == nullptr) return wrong("turn ", number, ": expected 'value' or 'content', found neither");
    const auto name = role_of((*role)->get_ref<const std::string&>());
    if (!name) return wrong("turn ", number, ": unknown speaker ", shown(**role), "; expected human, gpt, user, assistant or system");
    out_.conversation.turns.push_back({*name, {}});
    if ((*content)->is_string()) return read_text((*content)->get_ref<const std::string&>());
    if (!(*content)->is_array()) return wrong("turn ", number, ": the content must be a string or a list of parts, got ", shown(**content));
    for (const json& part : **content) {
      if (auto ok = read_part(part, number); !ok) return ok;
    }
    return {};
  }

  static std::optional<std::string> role_of(const std::string& written) {
    if (written == "human" || written == "user") return "user";
    if (written == "gpt" || written == "assistant") return "assistant";
    if (written == "system") return "system";
    return std::nullopt;
  }

  std::vector<Part>& parts() { return out_.conversation.turns.back().parts; }

  /// The next one of those listed, at a placeholder.
  template <class T>
  void show_listed(Shown<T>& kind, Part::Kind part) {
    if (kind.wanted < kind.listed.size()) kind.out.push_back(kind.listed[kind.wanted]);
    ++kind.wanted;
    kind.turns.push_back(out_.conversation.turns.size() - 1);
    parts().push_back({part});
  }

  void add_text(std::string_view part, bool after_placeholder, bool before_placeholder) {
    if (options_.line_breaks == LineBreaks::kDrop) {
      if (after_placeholder && part.starts_with("\r\n")) part.remove_prefix(1);
      if (after_placeholder && part.starts_with('\n')) part.remove_prefix(1);
      if (before_placeholder && part.ends_with('\n')) part.remove_suffix(part.ends_with("\r\n") ? 2 : 1);
    }
    if (!part.empty()) parts().push_back({Part::Kind::kText, std::string(part)});
  }

  /// Text with placeholders.
  Result<void> read_text(std::string_view rest) {
    for (bool first = true;; first = false) {
      const std::size_t image = rest.find(images_.placeholder);
      const std::size_t video = rest.find(videos_.placeholder);
      const std::size_t next = std::min(image, video);
      add_text(rest.substr(0, next), !first, next != std::string_view::npos);
      if (next == std::string_view::npos) return {};
      if (image < video) {
        show_listed(images_, Part::Kind::kImage);
      } else {
        show_listed(videos_, Part::Kind::kVideo);
      }
      rest.remove_prefix(next + std::string_view(image < video ? images_.placeholder : videos_.placeholder).size());
    }
  }

  Result<void> read_part(const json& part, std::size_t turn) {
    const auto type = part.is_object() ? part.find("type") : part.end();
    if (!part.is_object() || type == part.end() || !type->is_string()) return wrong("turn ", turn, ": a content part must be an object with a 'type', got ", shown(part));
    const auto& name = type->get_ref<const std::string&>();
    if (name == "text") {
      const auto found = part.find("text");
      if (found == part.end() || !found->is_string()) return wrong("turn ", turn, ": a content part of type text must have a string 'text'");
      if (!found->get_ref<const std::string&>().empty()) parts().push_back({Part::Kind::kText, found->get<std::string>()});
      return {};
    }
    if (name == "image" || name == "image_url") return read_shown(part, images_, Part::Kind::kImage);
    if (name == "video") return read_shown(part, videos_, Part::Kind::kVideo);
    return wrong("turn ", turn, ": unknown type of a content part ", shown(*type), "; expected text, image or video");
  }

  /// {"type": "image", "image": "a.png"}, or without a name for the next one listed.
  template <class T>
  Result<void> read_shown(const json& part, Shown<T>& kind, Part::Kind as) {
    auto named = one_of(part, {kind.singular, "path", "url", "image_url"});
    if (!named) return troupe::fail(named.error());
    if (*named == nullptr || (given_ && as == Part::Kind::kImage)) {
      show_listed(kind, as);
      return {};
    }
    const json* value = *named;
    if (value->is_object() && value->contains("url")) value = &value->at("url");
    auto one = read_one(*value, kind.singular, kind);
    if (!one) return troupe::fail(one.error());
    if constexpr (std::is_same_v<T, VideoSource>) {
      if (auto ok = read_rate(part, one->frames_per_second); !ok) return ok;
    }
    kind.out.push_back(std::move(*one));
    parts().push_back({as});
    return {};
  }

  Result<void> read_rate(const json& part, double& rate) const {
    const auto found = part.find("fps");
    if (found == part.end() || found->is_null()) return {};
    if (!found->is_number() || !(found->get<double>() > 0) || !std::isfinite(found->get<double>())) return wrong("'fps' must be a number > 0, got ", shown(*found));
    rate = found->get<double>();
    return {};
  }

  template <class T>
  Result<void> check_count(const Shown<T>& kind) const {
    if (kind.wanted == kind.listed.size()) return {};
    std::string at;
    for (const std::size_t turn : kind.turns) at += text(at.empty() ? " (in turn " : ", ", turn);
    if (at.size() > kShown) at = at.substr(0, kShown) + "...";
    return troupe::fail(Errc::kMismatch, text(where_, ": expected one ", kind.singular, " for each ", kind.placeholder, ": the conversation holds ", kind.wanted,
                                              at, at.empty() ? "" : ")", ", the record lists ", kind.listed.size()));
  }

  const std::string& where_;
  const RecordOptions& options_;
  bool given_ = false;   // pictures
  Record out_;
  Shown<PictureSource> images_{"<image>", "image", "images"};
  Shown<VideoSource> videos_{"<video>", "video", "videos"};
};

Result<Record> parse_with(Parser& parser, std::string_view content, const std::string& where) {
  try {
    return parser.parse(json::parse(content));
  } catch (const json::exception& error) {
    return troupe::fail(Errc::kBadData, text(where, ": is no valid JSON: ", reason_of(error)));
  }
}

}  // namespace

Result<Record> parse_record(std::string_view content, const std::string& where, const RecordOptions& options) {
  Parser parser(where, options);
  return parse_with(parser, content, where);
}

Result<Record> parse_record(std::string_view content, const std::string& where, std::vector<PictureSource> pictures, const RecordOptions& options) {
  Parser parser(where, options);
  parser.give(std::move(pictures));
  return parse_with(parser, content, where);
}

}  // namespace qwen_vl
