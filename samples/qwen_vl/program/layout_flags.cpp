#include "layout_flags.hpp"

#include <troupe/base/text.hpp>

namespace qwen_vl {

using troupe::Errc;
using troupe::Result;
using troupe::text;

Result<LayoutOptions> parse_layout(const std::string& vision, const std::string& language, const std::string& dtype) {
  LayoutOptions out;
  for (auto [name, value, mesh] : {std::tuple{"vision", &vision, &out.vision}, std::tuple{"language", &language, &out.language}}) {
    if (value->empty()) continue;
    auto parsed = troupe::Mesh::parse(*value);
    if (!parsed) return troupe::fail(Errc::kInvalidArgument, text(name, " = '", *value, "': ", parsed.error().message));
    *mesh = std::move(*parsed);
  }
  if (dtype == "float64") out.dtype = c10::ScalarType::Double;
  else if (dtype == "float32") out.dtype = c10::ScalarType::Float;
  else if (dtype == "bfloat16") out.dtype = c10::ScalarType::BFloat16;
  else return troupe::fail(Errc::kInvalidArgument, text("dtype = '", dtype, "': accepted: float64, float32, bfloat16"));
  return out;
}

}  // namespace qwen_vl
