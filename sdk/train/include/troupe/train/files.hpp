#pragma once

#include <string>
#include <string_view>

#include <troupe/base/result.hpp>

namespace troupe {

/// Writes `content` to `path`, whole or not at all: a temporary beside it ("<path>.part"), flushed to disk, then renamed.
/// Fails with: kIo naming the file; nothing is left behind then.
[[nodiscard]] Result<void> write_file(const std::string& path, std::string_view content);

/// The whole of a file. Fails with: kIo naming the file.
[[nodiscard]] Result<std::string> read_file(const std::string& path);

}  // namespace troupe
