#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>

#include <troupe/base/result.hpp>

namespace samples {

/// Where a setting's value goes, and what --help says about it.
struct Setting {
  std::variant<std::string*, std::int64_t*, double*, bool*> target;
  std::string help;
};

/// By name: a flag --name and a key of a TOML file alike.
using Settings = std::map<std::string, Setting>;

/// Takes every key of the TOML file. Fails with: kInvalidArgument naming file, line, key, and what is accepted.
[[nodiscard]] troupe::Result<void> read_settings(const std::string& path, const Settings& settings);

/// Takes one flag's text. Fails with: kInvalidArgument naming the flag and what is accepted.
[[nodiscard]] troupe::Result<void> set(const Settings& settings, const std::string& name, const std::string& given);

}  // namespace samples
