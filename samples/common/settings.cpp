#include "settings.hpp"

#include <toml++/toml.h>

#include <troupe/base/text.hpp>

namespace samples {
namespace {

using troupe::Errc;
using troupe::Result;
using troupe::text;

/// The value into its place; what was expected when it does not fit.
std::string take(const toml::node& node, const Setting& setting) {
  if (auto* const* to = std::get_if<std::string*>(&setting.target)) {
    if (const auto value = node.value_exact<std::string>()) return **to = *value, "";
    return "a string";
  }
  if (auto* const* to = std::get_if<std::int64_t*>(&setting.target)) {
    if (const auto value = node.value_exact<std::int64_t>()) return **to = *value, "";
    return "a whole number";
  }
  if (auto* const* to = std::get_if<bool*>(&setting.target)) {
    if (const auto value = node.value_exact<bool>()) return **to = *value, "";
    return "true or false";
  }
  if (const auto value = node.value<double>()) return *std::get<double*>(setting.target) = *value, "";
  return "a number";
}

}  // namespace

Result<void> read_settings(const std::string& path, const Settings& settings) {
  toml::table table;
  try {
    table = toml::parse_file(path);
  } catch (const toml::parse_error& error) {
    return troupe::fail(Errc::kInvalidArgument, text("config ", path, ", line ", error.source().begin.line, ": ", error.description()));
  }
  for (const auto& [name, node] : table) {
    const auto found = settings.find(std::string(name.str()));
    if (found == settings.end()) {
      std::string known;
      for (const auto& [key, unused] : settings) known += (known.empty() ? "" : ", ") + key;
      return troupe::fail(Errc::kInvalidArgument, text("config ", path, ": unknown key '", name.str(), "'; accepted: ", known));
    }
    if (const std::string expected = take(node, found->second); !expected.empty()) {
      return troupe::fail(Errc::kInvalidArgument, text("config ", path, ", line ", node.source().begin.line, ": '", name.str(), "' must be ", expected));
    }
  }
  return {};
}

Result<void> set(const Settings& settings, const std::string& name, const std::string& given) {
  const Setting& setting = settings.at(name);
  if (auto* const* to = std::get_if<std::string*>(&setting.target)) {
    **to = given;
    return {};
  }
  try {
    const auto table = toml::parse("v = " + given);
    if (const std::string expected = take(*table.get("v"), setting); expected.empty()) return {};
    else return troupe::fail(Errc::kInvalidArgument, text("--", name, " must be ", expected, ", got '", given, "'"));
  } catch (const toml::parse_error&) {
    return troupe::fail(Errc::kInvalidArgument, text("--", name, ": can't read '", given, "'"));
  }
}

}  // namespace samples
