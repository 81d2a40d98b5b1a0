#pragma once

#include <string>
#include <vector>

namespace bench {

/// A program that answers lines: what `tests/bench/peers` serves. Throws troupe::Exception when it ends or says no.
class Peer {
 public:
  /// Starts it and waits for its first line, which says what it is.
  explicit Peer(const std::vector<std::string>& arguments);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  /// Sends a line and returns the answer's line.
  std::string ask(const std::string& line);

 private:
  std::string read_line();
  int process_ = -1;
  int to_ = -1, from_ = -1;
  std::string rest_;
};

}  // namespace bench
