#pragma once

#include <string>

#include "parallelize.hpp"

namespace qwen_vl {

/// Layout options from what users write: meshes as "dp=2,sp=4" (last axis fastest; "" is one rank), dtype as
/// float64, float32 or bfloat16. Fails with: kInvalidArgument.
[[nodiscard]] troupe::Result<LayoutOptions> parse_layout(const std::string& vision, const std::string& language, const std::string& dtype);

}  // namespace qwen_vl
