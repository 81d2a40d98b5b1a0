#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <troupe/base/result.hpp>

#include "conversation.hpp"
#include "tokenizer.hpp"

namespace qwen_vl {

struct ChatOptions {
  std::string system = "You are a helpful assistant.";   ///< Said first when the conversation has no system turn at its head.
  bool generation_prompt = false;   ///< Ends with the head of an assistant's turn, for the model to go on.
  bool number_pictures = false;     ///< "Picture 1: ", "Video 1: " before each (the template's add_vision_id).
};

/// A conversation as the model reads it. Both have the same length.
struct Encoded {
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> labels;   ///< The id where an assistant speaks (its text and the closing <|im_end|>), else -100. Not shifted.
};

/// The label of a token that no loss counts.
inline constexpr std::int64_t kIgnored = -100;

/// The text of a conversation after Qwen2.5-VL's chat template, each picture or video as one placeholder between <|vision_start|> and <|vision_end|>.
/// Fails with: kInvalidArgument for no turns, an unknown role, or a text that holds a placeholder.
/// Source: chat_template.json of Qwen2.5-VL (ChatML, with pictures).
[[nodiscard]] troupe::Result<std::string> render_chat(const Conversation& conversation, const ChatOptions& options = {});

/// The ids of render_chat(), the placeholder of each picture or video repeated: `counts` has one number a picture or video, in the order they appear.
/// Special tokens written in a text are recognised, as transformers does. A token that reaches from the head of a turn into the answer has no label.
/// Fails with: as render_chat(); kMismatch when there are more or fewer counts than pictures and videos; kInvalidArgument for a count below 1 or a
/// tokenizer without a token of the template.
[[nodiscard]] troupe::Result<Encoded> encode_chat(const Tokenizer& tokenizer, const Conversation& conversation, std::span<const std::int64_t> counts,
                                                  const ChatOptions& options = {});

}  // namespace qwen_vl
