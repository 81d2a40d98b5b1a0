#include "chat.hpp"

#include <algorithm>

#include <troupe/base/text.hpp>

namespace qwen_vl {

using troupe::Errc;
using troupe::fail;
using troupe::Result;
using troupe::text;

namespace {

constexpr const char *kStart = "<|im_start|>", *kEnd = "<|im_end|>", *kVisionStart = "<|vision_start|>", *kVisionEnd = "<|vision_end|>";
constexpr const char *kImage = "<|image_pad|>", *kVideo = "<|video_pad|>";

Result<void> check(const Conversation& conversation) {
  if (conversation.turns.empty()) return fail(Errc::kInvalidArgument, "a conversation without turns");
  for (std::size_t i = 0; i < conversation.turns.size(); ++i) {
    const Turn& turn = conversation.turns[i];
    if (turn.role != "system" && turn.role != "user" && turn.role != "assistant") {
      return fail(Errc::kInvalidArgument, text("turn ", i, ": expected the role system, user or assistant, got '", turn.role, "'"));
    }
    std::string joined;   // neighbours may hold half a placeholder each
    for (const Part& part : turn.parts) joined += part.kind == Part::Kind::kText ? part.text : std::string(1, '\0');
    for (const char* placeholder : {kImage, kVideo}) {
      if (joined.find(placeholder) == std::string::npos) continue;
      return fail(Errc::kInvalidArgument, text("turn ", i, ": its text holds ", placeholder, ", which stands for a picture; give the picture as a part of its own"));
    }
  }
  return {};
}

/// Walks the template. The sink takes plain text, tokens of the template, pictures, and whether what comes is an answer.
template <class Sink>
void walk(const Conversation& conversation, const ChatOptions& options, Sink& sink) {
  int images = 0, videos = 0;
  const auto head = [&](const std::string& role) {
    sink.token(kStart);
    sink.plain(role + "\n");
  };
  const auto tail = [&] {
    sink.token(kEnd);
    sink.answer(false);
    sink.plain("\n");
  };
  if (conversation.turns.front().role != "system") {
    head("system");
    sink.plain(options.system);
    tail();
  }
  for (const Turn& turn : conversation.turns) {
    head(turn.role);
    sink.answer(turn.role == "assistant");
    for (const Part& part : turn.parts) {
      if (part.kind == Part::Kind::kText) {
        sink.plain(part.text);
        continue;
      }
      const bool image = part.kind == Part::Kind::kImage;
      const int number = image ? ++images : ++videos;
      if (options.number_pictures) sink.plain(text(image ? "Picture " : "Video ", number, ": "));
      sink.picture(image ? kImage : kVideo);
    }
    tail();
  }
  if (options.generation_prompt) head("assistant");
}

class Renderer {
 public:
  void plain(const std::string& part) { text_ += part; }
  void token(const char* name) { text_ += name; }
  void answer(bool) {}
  void picture(const char* placeholder) { text_.append(kVisionStart).append(placeholder).append(kVisionEnd); }
  std::string text_;
};

/// Encodes whole stretches between the template's tokens: cut anywhere else, their pieces would come out otherwise.
class Encoder {
 public:
  Encoder(const Tokenizer& tokenizer, std::span<const std::int64_t> counts) : tokenizer_(tokenizer), counts_(counts) {}

  void plain(const std::string& part) { stretch_ += part; }
  void answer(bool on) {
    answer_ = on;
    from_ = stretch_.size();
  }
  void token(const char* name) {
    flush();
    push(name, 1, answer_);
  }
  void picture(const char* placeholder) {
    flush();
    push(kVisionStart, 1, false);
    push(placeholder, counts_[used_++], false);
    push(kVisionEnd, 1, false);
  }
  void flush() {
    std::size_t begin = 0;   // in bytes; what stands before an answer is ASCII up to a line end, which normalization leaves alone
    for (const std::int64_t id : tokenizer_.encode(stretch_)) {
      const bool labelled = answer_ && begin >= from_;
      out_.ids.push_back(id);
      out_.labels.push_back(labelled ? id : kIgnored);
      begin += tokenizer_.bytes_of(id)->size();
    }
    stretch_.clear();
    from_ = 0;
  }
  Encoded out_;

 private:
  void push(const char* name, std::int64_t times, bool labelled) {
    const std::int64_t id = *tokenizer_.id_of(name);
    out_.ids.insert(out_.ids.end(), static_cast<std::size_t>(times), id);
    out_.labels.insert(out_.labels.end(), static_cast<std::size_t>(times), labelled ? id : kIgnored);
  }

  const Tokenizer& tokenizer_;
  std::span<const std::int64_t> counts_;
  std::size_t used_ = 0;
  std::string stretch_;
  bool answer_ = false;
  std::size_t from_ = 0;   ///< Where in the stretch the answer starts.
};

Result<void> check_counts(const Conversation& conversation, std::span<const std::int64_t> counts) {
  std::size_t images = 0, videos = 0;
  for (const Turn& turn : conversation.turns) {
    for (const Part& part : turn.parts) {
      images += part.kind == Part::Kind::kImage;
      videos += part.kind == Part::Kind::kVideo;
    }
  }
  if (counts.size() != images + videos) {
    return fail(Errc::kMismatch, text("the conversation has ", images, " images and ", videos, " videos, but ", counts.size(), " placeholder counts came with it"));
  }
  const auto bad = std::find_if(counts.begin(), counts.end(), [](std::int64_t count) { return count < 1; });
  if (bad != counts.end()) return fail(Errc::kInvalidArgument, text("picture or video ", bad - counts.begin(), ": expected at least 1 placeholder, got ", *bad));
  return {};
}

}  // namespace

Result<std::string> render_chat(const Conversation& conversation, const ChatOptions& options) {
  if (const auto checked = check(conversation); !checked) return fail(checked.error());
  Renderer renderer;
  walk(conversation, options, renderer);
  return std::move(renderer.text_);
}

Result<Encoded> encode_chat(const Tokenizer& tokenizer, const Conversation& conversation, std::span<const std::int64_t> counts, const ChatOptions& options) {
  if (const auto checked = check(conversation); !checked) return fail(checked.error());
  if (const auto checked = check_counts(conversation, counts); !checked) return fail(checked.error());
  for (const char* name : {kStart, kEnd, kVisionStart, kVisionEnd, kImage, kVideo}) {
    if (!tokenizer.id_of(name)) return fail(Errc::kInvalidArgument, text("the tokenizer has no token ", name, ", which the chat template needs"));
  }
  Encoder encoder(tokenizer, counts);
  walk(conversation, options, encoder);
  encoder.flush();
  return std::move(encoder.out_);
}

}  // namespace qwen_vl
