#pragma once

#include <fstream>
#include <sstream>
#include <string>

namespace qwen_vl::test {

/// A file below tests/golden/pictures.
inline std::string content_of(const std::string& name) {
  std::ifstream file(std::string(PICTURES_GOLDEN) + "/" + name, std::ios::binary);
  std::stringstream out;
  out << file.rdbuf();
  return out.str();
}

}  // namespace qwen_vl::test
