#include "protocol.hpp"

namespace troupe::detail {
namespace {

constexpr int kDeepestCause = 16;

Error read_error_at(WireReader& from, int depth) {
  Error out;
  out.code = from.number<Errc>();
  if (out.code < Errc::kInvalidArgument || out.code > Errc::kInternal) throw Exception(Error{.code = Errc::kBadData, .message = text("an error of unknown code ", static_cast<int>(out.code))});
  out.message = from.text();
  out.origin.pool = from.text();
  out.origin.rank = from.number<int>();
  out.origin.incarnation = from.number<std::uint32_t>();
  out.origin.node = from.text();
  out.maybe_executed = from.number<bool>();
  if (!from.number<bool>()) return out;
  if (depth == kDeepestCause) throw Exception(Error{.code = Errc::kBadData, .message = text("an error with more than ", kDeepestCause, " causes")});
  out.cause = std::make_shared<const Error>(read_error_at(from, depth + 1));
  return out;
}

void write_error_at(WireWriter& to, const Error& error, int depth) {
  to.number(error.code);
  to.text(error.message);
  to.text(error.origin.pool);
  to.number(error.origin.rank);
  to.number(error.origin.incarnation);
  to.text(error.origin.node);
  to.number(error.maybe_executed);
  const bool has_cause = error.cause != nullptr && depth < kDeepestCause;
  to.number(has_cause);
  if (has_cause) write_error_at(to, *error.cause, depth + 1);
}

}  // namespace

void write_error(WireWriter& to, const Error& error) { write_error_at(to, error, 0); }
Error read_error(WireReader& from) { return read_error_at(from, 0); }

}  // namespace troupe::detail
