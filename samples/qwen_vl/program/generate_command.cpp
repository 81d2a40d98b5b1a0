#include <cstdio>

#include <nlohmann/json.hpp>

#include "answers.hpp"
#include "checkpoint.hpp"
#include "commands.hpp"
#include "layout_flags.hpp"

namespace qwen_vl {

using troupe::Result;

Result<std::string> run(const GenerateCommand& command) {
  const auto layout = parse_layout(command.vision, command.language, command.dtype);
  if (!layout) return troupe::fail(layout.error());
  const auto preparation = read_preparation(command.model);
  if (!preparation) return troupe::fail(preparation.error());
  auto model = parallelize(preparation->model, *layout);
  if (!model) return troupe::fail(model.error());
  if (auto ok = load_checkpoint(*model, preparation->model, command.model); !ok) return troupe::fail(ok.error());
  Record record;
  record.where = "the prompt";
  Turn user{"user", {}};
  for (const auto& image : command.images) {
    record.pictures.push_back({.name = image});
    user.parts.push_back({.kind = Part::Kind::kImage});
  }
  user.parts.push_back({Part::Kind::kText, command.prompt});
  if (!command.system.empty()) record.conversation.turns.push_back({"system", {{Part::Kind::kText, command.system}}});
  record.conversation.turns.push_back(std::move(user));
  GenerateOptions options{.max_tokens = command.max_tokens};
  options.sampling = {.temperature = command.temperature, .top_k = command.top_k, .top_p = command.top_p, .seed = static_cast<std::uint64_t>(command.seed)};
  const auto reply = answer(*model, *preparation, record, options, [](const std::string& piece) {
    std::fwrite(piece.data(), 1, piece.size(), stderr);   // as it comes, for people; stdout has the JSON line
    std::fflush(stderr);
  });
  std::fputc('\n', stderr);
  if (!reply) return troupe::fail(reply.error());
  const Generated& made = reply->generated;
  const auto later = static_cast<double>(made.tokens.empty() ? 0 : made.tokens.size() - 1);
  const nlohmann::json line = {{"command", "generate"}, {"text", reply->text}, {"tokens", made.tokens.size()}, {"stopped", made.stopped}, {"prompt_seconds", made.prompt_seconds},
                               {"tokens_per_second", made.token_seconds > 0 ? later / made.token_seconds : 0}};
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace qwen_vl
