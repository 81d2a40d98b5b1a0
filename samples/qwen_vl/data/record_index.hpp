#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <troupe/base/result.hpp>

namespace qwen_vl {

/// Where a record lies in its file.
struct RecordPlace {
  std::int64_t offset = 0;   ///< In bytes.
  std::int64_t length = 0;
  std::int64_t line = 1;     ///< Of its first byte, from 1.
  friend bool operator==(const RecordPlace&, const RecordPlace&) = default;
};

/// Longest record in bytes: more is a file of another kind.
inline constexpr std::int64_t kMaxRecordBytes = std::int64_t{64} << 20;

/// Finds the records in a stream of bytes, of JSON lines or of one JSON array (the first byte that is no space decides), and parses none of them.
/// Blank lines and a byte order mark are skipped.
class RecordIndex {
 public:
  explicit RecordIndex(std::string name) : name_(std::move(name)) {}
  /// The next bytes, cut anywhere.
  /// Fails with: kBadData naming file and line, for an array that is none and a record that is too long.
  [[nodiscard]] troupe::Result<void> feed(std::string_view bytes);
  /// Fails with: kBadData when the array is not closed, or there was no record.
  [[nodiscard]] troupe::Result<std::vector<RecordPlace>> finish();

 private:
  enum class State : std::uint8_t { kStart, kLines, kLine, kFirst, kNext, kElement, kAfter, kDone };
  troupe::Result<void> take(char byte);
  troupe::Result<void> between(char byte);
  void inside(char byte);
  void begin(State state);
  void end(std::int64_t offset);
  [[nodiscard]] tl::unexpected<troupe::Error> wrong(const std::string& what) const;

  std::string name_;
  State state_ = State::kStart;
  std::int64_t offset_ = 0;   ///< Of the byte at hand.
  std::int64_t line_ = 1;
  RecordPlace current_;
  std::int64_t depth_ = 0;    ///< Of brackets inside an element.
  bool in_string_ = false;
  bool escaped_ = false;
  std::vector<RecordPlace> places_;
};

}  // namespace qwen_vl
