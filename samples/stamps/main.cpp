// Trains a small vision-language model on Tux Paint's stamps: see README.md.
#include <cstdio>

#include "config.hpp"
#include "report.hpp"
#include "stop.hpp"
#include "train.hpp"

namespace {

int complain(const troupe::Error& error) {
  std::fprintf(stderr, "stamps: %s\n", error.describe().c_str());
  return error.code == troupe::Errc::kInvalidArgument ? 2 : 1;
}

void print(const stamps::Outcome& outcome) {
  const auto& held = outcome.held_out;
  std::printf("trained %zu steps in %.1f s: %.0f patches/s, %.0f tokens/s\n", outcome.losses.size(), outcome.seconds, outcome.patches_per_second, outcome.tokens_per_second);
  if (outcome.stopped) return;
  std::printf("held-out loss (nats per token): true pictures %.3f, shuffled %.3f, none %.3f; unigram %.3f\n", held.with_pictures, held.shuffled, held.without, held.unigram);
  for (const auto& one : outcome.captions) {
    std::printf("  %s: \"%s\"  (is: \"%s\")\n", one.seen ? "seen  " : "unseen", one.generated.c_str(), one.truth.c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  auto parsed = stamps::parse(argc, argv);
  if (!parsed) return complain(parsed.error());
  if (parsed->exit_code >= 0) return parsed->exit_code;
  stamps::StopOnSignal stop;
  const auto outcome = stamps::train(parsed->config, stop.token());
  if (!outcome) return complain(outcome.error());
  print(*outcome);
  if (auto written = stamps::write_reports(parsed->config, *outcome); !written) return complain(written.error());
  std::printf("wrote %s/results.json and %s/loss.svg\n", parsed->config.out.c_str(), parsed->config.out.c_str());
  return outcome->stopped ? 130 : 0;
}
