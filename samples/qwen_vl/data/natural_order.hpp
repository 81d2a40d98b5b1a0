#pragma once

#include <string_view>

namespace qwen_vl {

/// Whether `a` comes before `b` when numbers in them count by value: "frame2" before "frame10". A total order.
[[nodiscard]] bool in_natural_order(std::string_view a, std::string_view b);

/// Whether files that end so are decoded: ".png", ".JPG", "jpeg", with or without the dot.
[[nodiscard]] bool is_picture_extension(std::string_view extension);

}  // namespace qwen_vl
