#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "records.hpp"

namespace qwen_vl {

[[nodiscard]] bool is_valid_utf8(std::string_view bytes);

/// The caption in a text file: all of it, without the line breaks at its end. Tux Paint's own form holds further languages in lines like "de.utf8=Ein Hund.":
/// they are left out, or are the only ones when `language` is one of them. Empty when there is none.
/// Fails with: kBadData naming the file when it is no UTF-8.
[[nodiscard]] troupe::Result<std::string> caption_in(std::string_view content, const std::string& name, const std::string& language);

/// A user who shows pictures and asks `prompt`, an assistant who says `caption`.
[[nodiscard]] Record caption_record(std::string caption, std::vector<PictureSource> pictures, const std::string& prompt, std::string where);

}  // namespace qwen_vl
