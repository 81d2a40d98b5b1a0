// Trains a small vision-language model on Tux Paint's stamps: see README.md.
#include <cstdio>

#include "config.hpp"
#include "report.hpp"
#include "common/stop.hpp"
#include "train.hpp"

namespace {

constexpr int kFailed = 1, kUsage = 2, kInterrupted = 130;  // 128 + SIGINT, as a shell says it

int complain(const troupe::Error& error) {
  std::fprintf(stderr, "stamps: %s\n", error.describe().c_str());
  return error.code == troupe::Errc::kInvalidArgument ? kUsage : kFailed;
}

void print(const stamps::Outcome& outcome) {
  std::printf("trained %zu steps in %.1f s: %.0f patches/s, %.0f tokens/s\n", outcome.losses.size(), outcome.seconds, outcome.per_second(outcome.patches),
              outcome.per_second(outcome.tokens));
  if (const auto& held = outcome.held_out) {
    std::printf("held-out loss (nats per token): true pictures %.3f, shuffled %.3f, none %.3f; unigram %.3f\n", held->with_pictures, held->shuffled, held->without,
                held->unigram);
  }
  constexpr int kShown = 6;  // of each kind; results.json has all
  int shown[2] = {};
  for (const auto& one : outcome.captions) {
    if (!one.known || ++shown[one.seen ? 1 : 0] > kShown) continue;
    std::printf("  %s  \"%s\"  (people say: \"%s\")\n", one.seen ? "seen  " : "unseen", one.generated.c_str(), one.truth.c_str());
  }
}

int run(int argc, char** argv) {
  const auto parsed = stamps::parse(argc, argv);
  if (!parsed) return complain(parsed.error());
  if (parsed->exit_code >= 0) return parsed->exit_code;
  samples::StopOnSignal stop;
  const auto outcome = stamps::train(parsed->config, stop.token());
  if (!outcome) return complain(outcome.error());
  print(*outcome);
  if (auto written = stamps::write_reports(parsed->config, *outcome); !written) return complain(written.error());
  std::printf("wrote %s/results.json, loss.svg and report.html\n", parsed->config.out.c_str());
  if (outcome->stopped) std::printf("stopped by a signal\n");
  return outcome->stopped ? kInterrupted : 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (...) {  // out of memory, LibTorch: what is left of the program's own code that throws
    return complain(troupe::error_from_current_exception());
  }
}
