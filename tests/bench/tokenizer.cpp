// How fast samples/qwen_vl/text encodes English with Qwen's own ranks.
#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <tokenizer.hpp>

#include "rows.hpp"

namespace bench {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kMost = 8'000'000, kLeast = 5'000'000;

/// English that every Debian with git has: Perl's manual, packages' copyright files, Perl's modules with their documentation. In a fixed order, up to kMost bytes.
std::string english() {
  std::vector<fs::path> manual, licences, modules;
  for (const char* root : {"/usr/share/perl", "/usr/share/doc"}) {
    std::error_code error;
    for (fs::recursive_directory_iterator at(root, fs::directory_options::skip_permission_denied, error), end; at != end; at.increment(error)) {
      const fs::path& path = at->path();
      if (!at->is_regular_file(error) || at->is_symlink(error)) continue;
      if (path.extension() == ".pod") manual.push_back(path);
      if (path.extension() == ".pm") modules.push_back(path);
      if (path.filename() == "copyright") licences.push_back(path);
    }
  }
  std::string text;
  for (auto* group : {&manual, &licences, &modules}) {
    std::sort(group->begin(), group->end());
    for (const auto& path : *group) {
      if (text.size() >= kMost) break;
      std::ifstream in(path, std::ios::binary);
      text.append(std::istreambuf_iterator<char>(in), {});
    }
  }
  text.resize(std::min(text.size(), kMost));
  return text;
}

/// Seconds that this thread has worked: what a thread can do, whatever else the machine does.
double worked() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

std::vector<Row> tokenizer() {
  Row row;
  row.name = "tokenizer.mb_per_s";
  row.unit = "MB/s";
  const std::string text = english();
  if (!fs::exists(BENCH_RANKS)) {
    row.reason = "no " BENCH_RANKS ": run tools/setup";
  } else if (text.size() < kLeast) {
    row.reason = "only " + std::to_string(text.size()) + " bytes of English in /usr/share/perl and /usr/share/doc, 5 MB wanted";
  } else {
    const auto tokenizer = troupe::or_throw(qwen_vl::Tokenizer::load(BENCH_RANKS));
    std::size_t ids = 0;
    row = single(row.name, row.unit, 9, [&] {
      const double start = worked();
      ids = tokenizer.encode(text).size();
      return static_cast<double>(text.size()) / 1e6 / (worked() - start);
    });
    row.reason = "CPU time of one thread; " + std::to_string(text.size() / 1'000'000) + " MB of Perl's manual and Debian's copyright files, " +
                 std::to_string(ids) + " ids; " + row.reason;
  }
  return {with_target(std::move(row), Of::kValue, false, 20)};
}

}  // namespace bench
