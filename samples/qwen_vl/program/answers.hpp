#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "generate.hpp"
#include "prepare.hpp"
#include "training.hpp"

namespace qwen_vl {

/// Answers one conversation, whose last turn is the user's. `on_text` gets the answer piece by piece as it is made.
struct Reply {
  std::string text;
  Generated generated;
};
[[nodiscard]] troupe::Result<Reply> answer(Model& model, const Preparation& preparation, const Record& record, const GenerateOptions& options,
                                           const std::function<void(const std::string&)>& on_text = {});

/// Greedy answers to the first `count` records of the data: what they ask first beside what they answer.
[[nodiscard]] troupe::Result<std::vector<Answer>> answer_records(Model& model, const Preparation& preparation, const std::string& data, const std::string& question, std::int64_t count);

}  // namespace qwen_vl
