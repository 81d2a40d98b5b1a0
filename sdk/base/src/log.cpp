#include <troupe/base/log.hpp>

#include <cstdio>

namespace troupe {
namespace {

void write_to_stderr(LogLevel level, std::string_view line) {
  const char* mark = level >= LogLevel::kError ? "error" : level == LogLevel::kWarning ? "warning" : "info";
  std::fprintf(stderr, "troupe %s: %.*s\n", mark, static_cast<int>(line.size()), line.data());
}

}  // namespace

Log::Log(LogSink sink, LogLevel least) : sink_(sink ? std::move(sink) : write_to_stderr), least_(least) {}

void Log::write(LogLevel level, std::string_view line) {
  if (level < least_) return;
  std::lock_guard lock(mutex_);
  sink_(level, line);
}

void Log::warn_once(const std::string& key, std::string_view line) {
  {
    std::lock_guard lock(mutex_);
    if (!said_.insert(key).second) return;
  }
  warn(line);
}

}  // namespace troupe
