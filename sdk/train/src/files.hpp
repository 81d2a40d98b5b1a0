#pragma once

#include <cstdint>
#include <string>

#include <troupe/base/result.hpp>

namespace troupe::detail {

/// errno as an Error: "PATH: can't be WHAT: reason".
[[nodiscard]] Error io_error(const std::string& what, const std::string& path);

[[nodiscard]] Result<void> write_bytes(int file, const void* from, std::int64_t bytes, const std::string& path);

/// Flushes `file`, renames `part` to `path`, flushes the folder: after a crash there is the old file or the new one.
[[nodiscard]] Result<void> put_in_place(int file, const std::string& part, const std::string& path);

}  // namespace troupe::detail
