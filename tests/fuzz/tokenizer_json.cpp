// Any bytes as a tokenizer.json: refused by name, or a tokenizer that encodes and decodes anything.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tokenizer.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto tokenizer = qwen_vl::Tokenizer::parse_json(bytes, "input");
  if (!tokenizer) {
    if (!tokenizer.error().message.starts_with("input: ")) std::abort();
    return 0;
  }
  const auto ids = tokenizer->encode(bytes);
  const auto text = tokenizer->decode(ids);
  if (!text || (tokenizer->encode(*text) != ids && tokenizer->parts().added.empty())) std::abort();
  return 0;
}
