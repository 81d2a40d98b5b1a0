// Speed and memory, each beside its baseline in the same run. See docs/benchmarks.md.
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include <troupe/actors/worker.hpp>

#include "rows.hpp"

int main(int argc, char** argv) {
  if (const auto code = troupe::worker_main(argc, argv)) return *code;
  if (argc == 2 && (std::strcmp(argv[1], "--caf-adder") == 0 || std::strcmp(argv[1], "--bare") == 0)) return bench::serve(argv[1]);
  const std::vector<std::pair<std::string, std::function<std::vector<bench::Row>()>>> groups = {
      {"calls", bench::calls}, {"spawn", bench::spawn}, {"processes", bench::processes}, {"handover", bench::handover}, {"layer", bench::layer}, {"step", bench::step},
      {"load", bench::load}, {"tokenizer", bench::tokenizer},
      {"qwen", bench::qwen}};
  std::string path = "build/bench/results.json";
  std::vector<std::string> wanted;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--help" || argument == "-h") {
      std::printf("usage: troupe_bench [--out FILE] [GROUP...]\ngroups, all by default:");
      for (const auto& [name, unused] : groups) std::printf(" %s", name.c_str());
      std::printf("\nA partial run merges into FILE (%s).\n", path.c_str());
      return 0;
    }
    if (argument == "--out" && i + 1 < argc) {
      path = argv[++i];
      continue;
    }
    wanted.push_back(argument);
  }
  std::vector<bench::Row> rows;
  for (const auto& name : wanted) {
    bool known = false;
    for (const auto& [group, unused] : groups) known = known || group == name;
    if (!known) return std::fprintf(stderr, "troupe_bench: no group '%s'; see --help\n", name.c_str()), 2;
  }
  for (const auto& [name, run] : groups) {
    bool take = wanted.empty();
    for (const auto& one : wanted) take = take || one == name;
    if (!take) continue;
    std::fprintf(stderr, "%s ...\n", name.c_str());
    for (auto& row : run()) rows.push_back(std::move(row));
  }
  if (!bench::publish(rows, path)) return std::fprintf(stderr, "troupe_bench: can't write %s\n", path.c_str()), 1;
  std::printf("wrote %s\n", path.c_str());
  return 0;
}
