#pragma once

#include <string>
#include <vector>

namespace qwen_vl {

/// A stretch of text, or the place of one picture or video in a turn.
struct Part {
  enum class Kind { kText, kImage, kVideo } kind = Kind::kText;
  std::string text = {};   ///< Of kText.
};

/// What one side says. Roles: "system", "user", "assistant".
struct Turn {
  std::string role;
  std::vector<Part> parts;
};

struct Conversation {
  std::vector<Turn> turns;
};

}  // namespace qwen_vl
