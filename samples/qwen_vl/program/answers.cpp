#include "answers.hpp"

#include <algorithm>
#include <utility>

#include "chat_source.hpp"

namespace qwen_vl {
namespace {

std::string words_of(const Turn& turn) {
  std::string out;
  for (const Part& part : turn.parts) out += part.text;
  return out;
}

/// The conversation up to its first answer.
Record question_of(const Record& record) {
  Record out = record;
  const auto first = std::ranges::find(out.conversation.turns, "assistant", &Turn::role);
  out.conversation.turns.erase(first, out.conversation.turns.end());
  std::size_t images = 0, videos = 0;
  for (const Turn& turn : out.conversation.turns) {
    for (const Part& part : turn.parts) {
      images += part.kind == Part::Kind::kImage ? 1 : 0;
      videos += part.kind == Part::Kind::kVideo ? 1 : 0;
    }
  }
  out.pictures.resize(images);
  out.videos.resize(videos);
  return out;
}

}  // namespace

troupe::Result<Reply> answer(Model& model, const Preparation& preparation, const Record& record, const GenerateOptions& options, const std::function<void(const std::string&)>& on_text) {
  const auto sample = prepare(record, preparation, {.generation_prompt = true});
  if (!sample) return troupe::fail(sample.error());
  GenerateOptions with = options;
  if (with.stop.empty()) with.stop = {preparation.model.tokens.end_of_turn, preparation.model.tokens.end_of_text};
  if (on_text) {
    // bytes, not decoded text: a character may be cut between two tokens
    with.on_token = [&](std::int64_t token) {
      if (const auto bytes = preparation.tokenizer.bytes_of(token)) on_text(std::string(*bytes));
    };
  }
  auto generated = generate(model, preparation.model, collate({*sample}, preparation), with);
  if (!generated) return troupe::fail(generated.error());
  auto text = preparation.tokenizer.decode(generated->tokens, Specials::kSkip);
  if (!text) return troupe::fail(text.error());
  return Reply{std::move(*text), std::move(*generated)};
}

troupe::Result<std::vector<Answer>> answer_records(Model& model, const Preparation& preparation, const std::string& data, const std::string& question, std::int64_t count) {
  std::vector<Answer> out;
  const auto records = open_data(data, question);
  if (!records) return troupe::fail(records.error());
  for (std::int64_t i = 0; i < std::min(count, (*records)->size()); ++i) {
    const auto record = (*records)->read(i);
    if (!record) return troupe::fail(record.error());
    const Record asked = question_of(*record);
    const auto first = asked.conversation.turns.size();
    if (first == 0 || first == record->conversation.turns.size()) continue;   // nobody asks, or nobody answers
    const auto reply = answer(model, preparation, asked, {.max_tokens = 64});
    if (!reply) return troupe::fail(reply.error());
    out.push_back({asked.pictures.empty() ? "" : asked.pictures.front().name, words_of(asked.conversation.turns.back()), words_of(record->conversation.turns[first]), reply->text});
  }
  return out;
}

}  // namespace qwen_vl
