#pragma once

#include <memory>

namespace bench {

/// Raw CAF with the settings that Troupe uses: what its calls are held against.
class CafBaseline {
 public:
  CafBaseline();
  ~CafBaseline();

  /// Seconds per request from a scoped actor to a detached actor and back, over `count`.
  [[nodiscard]] double detached_round_trip(int count);
  /// Requests per second from an event-based actor to a scheduled one with `window` in flight.
  [[nodiscard]] double pipelined(int count, int window);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// An adder that other processes can ask over CAF io, on loopback.
class CafAdder {
 public:
  CafAdder();
  ~CafAdder();
  [[nodiscard]] int port() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The asking side.
class CafRemote {
 public:
  explicit CafRemote(int port);
  ~CafRemote();
  /// Seconds per request from a scoped actor to the detached actor of the other process and back.
  [[nodiscard]] double round_trip(int count);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace bench
