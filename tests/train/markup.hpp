#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// What is wrong with the tags and entities of HTML or XML, or "": every element closed in order, "&" only in the entities that
/// escaping makes.
inline std::string markup_fault(std::string_view text) {
  std::vector<std::string> open;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '&') {
      const auto name = text.substr(at, text.substr(at, 8).find(';') + 1);
      if (name != "&amp;" && name != "&lt;" && name != "&gt;" && name != "&quot;" && name != "&#39;") return "a bare & at " + std::to_string(at);
    }
    if (text[at] != '<') continue;
    const std::size_t end = text.find('>', at);
    if (end == std::string_view::npos) return "a tag without end at " + std::to_string(at);
    const std::string_view tag = text.substr(at + 1, end - at - 1);
    if (tag.substr(1).find('<') != std::string_view::npos) return "a bare < after " + std::string(tag.substr(0, 40));
    at = end;
    const std::string name(tag.substr(0, tag.find_first_of(" \n")));
    if (name == "!DOCTYPE" || name == "meta" || name == "img" || tag.ends_with('/')) continue;
    if (!name.starts_with('/')) {
      open.push_back(name);
      continue;
    }
    if (open.empty() || open.back() != name.substr(1)) return "</" + name.substr(1) + "> closes " + (open.empty() ? "nothing" : open.back());
    open.pop_back();
  }
  return open.empty() ? "" : "<" + open.back() + "> is not closed";
}

/// The values of an attribute, in order.
inline std::vector<std::string> attributes(std::string_view text, const std::string& name) {
  std::vector<std::string> out;
  const std::string start = " " + name + "=\"";
  for (std::size_t at = text.find(start); at != std::string_view::npos; at = text.find(start, at + 1)) {
    const std::size_t begin = at + start.size();
    out.emplace_back(text.substr(begin, text.find('"', begin) - begin));
  }
  return out;
}

}  // namespace troupe
