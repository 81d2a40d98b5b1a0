#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace troupe::detail {

/// `bytes` as text that is safe in a log and on a terminal: valid UTF-8 and tabs stay, every other byte is
/// written \xNN (control characters, so colours too).
[[nodiscard]] std::string printable(std::string_view bytes);

/// Cuts what a process writes into lines for a log. A line ends at \n, \r\n or \r (progress bars use the
/// last; it never makes an empty line). What follows the first kMaxLine bytes of a line is dropped and counted in its text.
/// Thread: one at a time.
class LineSplitter {
 public:
  static constexpr std::size_t kMaxLine = 64 * 1024;
  using Emit = std::function<void(std::string)>;  ///< One printable line, without its end.

  void feed(std::string_view bytes, const Emit& emit);
  /// The end of the stream: a line that no \n ended is one too.
  void finish(const Emit& emit);

 private:
  void keep(std::string_view part);
  void end_line(const Emit& emit);

  std::string line_;
  std::size_t dropped_ = 0;
  bool after_return_ = false;
};

}  // namespace troupe::detail
