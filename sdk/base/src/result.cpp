#include <troupe/base/result.hpp>

#include <troupe/base/text.hpp>

namespace troupe {

std::string_view to_string(Errc code) noexcept {
  switch (code) {
    case Errc::kInvalidArgument: return "InvalidArgument";
    case Errc::kInfeasible: return "Infeasible";
    case Errc::kResourcesBusy: return "ResourcesBusy";
    case Errc::kLimit: return "Limit";
    case Errc::kTimeout: return "Timeout";
    case Errc::kClosed: return "Closed";
    case Errc::kPeerLost: return "PeerLost";
    case Errc::kMismatch: return "Mismatch";
    case Errc::kOutOfMemory: return "OutOfMemory";
    case Errc::kUserException: return "UserException";
    case Errc::kInconsistent: return "Inconsistent";
    case Errc::kDeadlock: return "Deadlock";
    case Errc::kStale: return "Stale";
    case Errc::kNoEdge: return "NoEdge";
    case Errc::kEndOfData: return "EndOfData";
    case Errc::kBadData: return "BadData";
    case Errc::kIo: return "Io";
    case Errc::kUnavailable: return "Unavailable";
    case Errc::kInternal: return "Internal";
  }
  return "Unknown";
}

std::string Error::describe() const {
  std::string out = text(to_string(code));
  if (!origin.pool.empty()) {
    out += text(" [pool ", origin.pool);
    if (origin.rank >= 0) out += text(", rank ", origin.rank);
    if (origin.incarnation > 0) out += text(", incarnation ", origin.incarnation);
    if (!origin.node.empty()) out += text(", node ", origin.node);
    out += "]";
  }
  out += ": " + message;
  if (maybe_executed) out += " (may have been executed)";
  if (cause) out += "; caused by " + cause->describe();
  return out;
}

Error caused_by(Error cause, Errc code, std::string message, Origin origin) {
  const bool maybe_executed = cause.maybe_executed;
  return Error{code, std::move(message), std::move(origin), std::make_shared<const Error>(std::move(cause)),
               maybe_executed};
}

Exception::Exception(Error error) : error_(std::move(error)), text_(error_.describe()) {}

Error error_from_current_exception(Errc code) noexcept {
  try {
    throw;
  } catch (const Exception& e) {
    return e.error();
  } catch (const tl::bad_expected_access<Error>& e) {
    return e.error();  // a user's .value() on a failed Result says what failed
  } catch (const std::bad_alloc&) {
    return Error{Errc::kOutOfMemory, "the system refused an allocation (std::bad_alloc)"};
  } catch (const std::exception& e) {
    // LibTorch appends pages of C++ frames to its texts: the first part says what happened
    const std::string_view what = e.what();
    return Error{code, std::string(what.substr(0, what.find("\nException raised from")))};
  } catch (...) {
    return Error{code, "an exception that is not a std::exception"};
  }
}

}  // namespace troupe
