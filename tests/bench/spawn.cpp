#include <troupe/actors/runtime.hpp>

#include "rows.hpp"

namespace bench {
namespace {

using namespace std::chrono_literals;
using namespace troupe;

class Nothing {
 public:
  int verb() { return 1; }
};

}  // namespace

std::vector<Row> spawn() {
  const Runtime runtime = or_throw(Runtime::create());
  return {with_target(single("spawn.threads8", "ms", 25, [&] {
                        const double start = now();
                        const auto pool = or_throw(runtime.pool<Nothing>({.name = "eight", .mesh = {{"dp", 8}}}));
                        or_throw(pool.ready(10s));
                        return (now() - start) * 1e3;
                      }),
                      Of::kValue, true, 3)};
}

}  // namespace bench
