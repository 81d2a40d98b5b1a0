#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

namespace troupe {

enum class LogLevel : int { kDebug = 0, kInfo, kWarning, kError };

/// Receives each line of Troupe's own log. May be called from any thread, one at a time.
using LogSink = std::function<void(LogLevel, std::string_view)>;

/// Where the library speaks. The host supplies the sink (EMB); the default writes warnings and
/// errors to stderr. Shared by everything under one Runtime; never global.
class Log {
 public:
  explicit Log(LogSink sink = {}, LogLevel least = LogLevel::kWarning);

  void write(LogLevel level, std::string_view line);
  void warn(std::string_view line) { write(LogLevel::kWarning, line); }
  void info(std::string_view line) { write(LogLevel::kInfo, line); }

  /// Writes a warning the first time this `key` is seen: fall-backs are said once (TRN-6).
  void warn_once(const std::string& key, std::string_view line);

 private:
  LogSink sink_;
  LogLevel least_;
  std::mutex mutex_;
  std::set<std::string> said_;
};

}  // namespace troupe
