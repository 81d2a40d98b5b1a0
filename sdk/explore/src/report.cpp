#include <algorithm>
#include <array>
#include <iomanip>
#include <sstream>
#include <string_view>
#include <utility>

#include <troupe/base/text.hpp>

#include "scheduler.hpp"

namespace troupe::explore {
namespace {

constexpr std::size_t kTraceLines = 40;
constexpr std::array<std::string_view, 12> kKinds = {"starts a thread", "before a lock", "after a lock", "waits",  "before a wake", "yields",
                                                     "sleeps",          "joins",         "ends",         "time passes", "draws",         "notes"};

std::string_view short_path(std::string_view file) {
  for (const std::string_view root : {"/actors/", "/transport/", "/sdk/", "/tests/", "/samples/"}) {
    if (const auto at = file.rfind(root); at != std::string_view::npos) return file.substr(at + 1);
  }
  return file;
}

}  // namespace

std::string Scheduler::where(const Runner& runner) const {
  const auto since = runner.until.is_never() ? std::string{} : text(" until ", std::chrono::duration<double, std::milli>(runner.until.time() - now()).count(), " ms from now");
  switch (runner.state) {
    case State::kRunnable: return "can run";
    case State::kSleep: return "sleeps" + since;
    case State::kDone: return "has ended";
    case State::kJoin: return text("joins ", static_cast<const Runner*>(runner.on)->name);
    case State::kCondition: return text("waits at ", short_path(runner.at.file), ":", runner.at.line, since);
    case State::kMutex: {
      const auto owner = owners_.find(runner.on);
      return text("waits for a lock that ", owner == owners_.end() ? "nobody" : runners_[static_cast<std::size_t>(owner->second)]->name, " holds");
    }
  }
  return {};
}

std::string Scheduler::line_of(const Event& event) const {
  const auto name = [&](int index) { return runners_[static_cast<std::size_t>(index)]->name; };
  std::ostringstream out;
  const double ms = static_cast<double>(event.time - (std::int64_t{1} << 40)) / 1e6;
  out << std::setw(7) << event.step << std::setw(12) << std::fixed << std::setprecision(4) << ms << " ms  ";
  if (event.kind == Kind::kTime) {
    out << "time passes to the next deadline";
  } else {
    out << name(event.from) << ' ' << kKinds[static_cast<std::size_t>(event.kind)];
    if (event.kind == Kind::kDraw) {
      out << ' ' << event.to;
    } else if (event.kind == Kind::kNote) {
      out << ": " << notes_[static_cast<std::size_t>(event.to)];
    } else {
      out << " -> " << name(event.to);
    }
  }
  out << '\n';
  return std::move(out).str();
}

void Scheduler::conclude(const std::string& what) {
  Failure failure{.seed = seed_, .what = what, .threads = {}, .trace = {}, .replays = false};
  for (const auto& runner : runners_) {
    if (runner->state != State::kDone) failure.threads.push_back(runner->name + " " + where(*runner));
  }
  const std::size_t first = options_.full_trace || events_.size() <= kTraceLines ? 0 : events_.size() - kTraceLines;
  if (first > 0) failure.trace = text("  (", first, " earlier decisions left out: TROUPE_SEED=", seed_, " shows all)\n");
  for (std::size_t i = first; i < events_.size(); ++i) failure.trace += line_of(events_[i]);
  failure_ = std::move(failure);
}

std::string Failure::describe() const {
  std::string out = text("seed ", seed, ": ", what, "\n");
  for (const auto& thread : threads) out += "  " + thread + "\n";
  out += text("replay it with TROUPE_SEED=", seed, replays ? " (a second run made the same decisions)" : " (a second run differed: something outside the scheduler decides, too)", "\n");
  return out + "   step        time  decision\n" + trace;
}

}  // namespace troupe::explore
