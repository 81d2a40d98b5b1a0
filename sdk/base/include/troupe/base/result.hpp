#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <tl/expected.hpp>

namespace troupe {

/// What went wrong, as far as a caller would act on it. The message says the rest.
enum class Errc : std::uint8_t {
  kInvalidArgument = 1,  ///< The call can never work as written. Not for states that may change.
  kInfeasible,           ///< No machine of this cluster could ever hold the request (RES-3).
  kResourcesBusy,        ///< It would fit, but not now: others hold what it asks for (RES-3).
  kLimit,                ///< Back-pressure: the accepted messages or bytes are at their limit (POOL-3).
  kTimeout,              ///< The deadline of the caller passed. Not for a peer found dead.
  kClosed,               ///< The object was shut down by its owner before or while the call ran.
  kPeerLost,             ///< A member, peer or rank died or left; survivors stay usable (SUP-3).
  kMismatch,             ///< Two sides disagree: shape, dtype, size, operation, position (TRN-8).
  kOutOfMemory,          ///< A budget or the machine refused an allocation; the rank survives (RES-5).
  kUserException,        ///< Code of the user (constructor, verb, source) threw; the text is its own.
  kInconsistent,         ///< An earlier failure may have changed some ranks; reset() the pool (POOL-7).
  kDeadlock,             ///< The wait would close a cycle of ranks that wait for each other (POOL-6).
  kStale,                ///< The handle belongs to an incarnation or generation that has ended (SUP-4).
  kNoEdge,               ///< A stage was called with an input that no connect() feeds.
  kEndOfData,            ///< The source has no further batch; nothing was changed.
  kBadData,              ///< A file or message is broken: truncated, malformed, wrong magic.
  kIo,                   ///< The operating system refused: missing file, permission, full disk.
  kUnavailable,          ///< Not in this build or on this machine; the message names what to add (TRN-7).
  kInternal,             ///< A bug of Troupe's own. Not for anything a user can cause.
};

/// The enumerator's name without the k, e.g. "InvalidArgument".
std::string_view to_string(Errc code) noexcept;

/// Where an error was born.
struct Origin {
  std::string pool = {};           ///< Empty outside pools.
  int rank = -1;                   ///< -1: no particular rank.
  std::uint32_t incarnation = 0;   ///< Which life of the rank, from 0.
  std::string node = {};           ///< Empty: this host.
};

/// A failure as a value: what, where, expected, got, what to do.
struct Error {
  Errc code = Errc::kInternal;
  std::string message;
  Origin origin = {};
  std::shared_ptr<const Error> cause = nullptr;  ///< The earlier failure that led to this one.
  bool maybe_executed = false;                   ///< True when user code may have run (SUP-1).

  /// One line: code, origin, message, then each cause.
  [[nodiscard]] std::string describe() const;
};

/// A value or an Error. value() on an error throws tl::bad_expected_access<Error>.
template <class T>
using Result = tl::expected<T, Error>;

/// Makes the failing side of any Result: `return fail(Errc::kTimeout, "...")`.
[[nodiscard]] inline tl::unexpected<Error> fail(Errc code, std::string message, Origin origin = {}) {
  return tl::unexpected<Error>(Error{code, std::move(message), std::move(origin)});
}
[[nodiscard]] inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

/// `error` as the cause of a new one; keeps maybe_executed.
[[nodiscard]] Error caused_by(Error cause, Errc code, std::string message, Origin origin = {});

/// An Error as an exception, for code that can't return a Result (autograd functions, user verbs).
/// Caught where a verb ends and turned back into the same Error.
class Exception : public std::exception {
 public:
  explicit Exception(Error error);
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }
  [[nodiscard]] const Error& error() const noexcept { return error_; }

 private:
  Error error_;
  std::string text_;
};

/// The value, or an Exception that carries the Error.
template <class T>
T or_throw(Result<T> result) {
  if (!result) throw Exception(std::move(result.error()));
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// Turns the exception in flight into an Error with code `code`, unless it is an Exception.
/// Call inside a catch block only.
[[nodiscard]] Error error_from_current_exception(Errc code = Errc::kUserException) noexcept;

}  // namespace troupe
