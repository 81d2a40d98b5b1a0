#include <fstream>

#include <ATen/ATen.h>

#include <troupe/stage/environment.hpp>
#include <troupe/stage/graph.hpp>

#include "rows.hpp"

namespace bench {
namespace {

using namespace std::chrono_literals;
using namespace troupe;

constexpr std::int64_t kRows = 1 << 18;
constexpr std::int64_t kColumns = 1 << 10;   // 1 GiB of floats

struct Batch {
  Packed rows;
  static auto troupe_fields(auto& self) { return std::tie(self.rows); }
};
struct Empty {
  static auto troupe_fields(auto&) { return std::tie(); }
};

class Large {
 public:
  explicit Large(const Empty&) : rows_(at::zeros({kRows, kColumns})) {}
  std::optional<Batch> next() {
    Batch out;
    out.rows.rows = rows_;
    out.rows.segments = {{.id = 0, .sample = 0, .rows = kRows}};
    return out;
  }

 private:
  at::Tensor rows_;
};

class Pass {
 public:
  Pass(Rank&, const Empty&) {}
  Packed forward(const Packed& in) {
    data_ = reinterpret_cast<std::int64_t>(in.rows.const_data_ptr());
    return {in.rows, in.segments};
  }
  std::int64_t data() const { return data_; }

 private:
  std::int64_t data_ = 0;
};

class Look {
 public:
  Look(Rank&, const Empty&) {}
  Loss forward(const Packed& in) {
    data_ = reinterpret_cast<std::int64_t>(in.rows.const_data_ptr());
    return {in.rows.narrow(0, 0, 1).sum(), 1};
  }
  std::int64_t data() const { return data_; }

 private:
  std::int64_t data_ = 0;
};

std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * 4096;
}

}  // namespace

std::vector<Row> handover() {
  RuntimeOptions options;
  options.environment = torch_environment();
  const Runtime runtime = or_throw(Runtime::create(std::move(options)));
  Graph graph(runtime);
  const auto data = or_throw(graph.source<Large>({.prefetch = 1}, Empty{}));
  const auto pass = or_throw(graph.stage<Pass>({.name = "pass"}, Empty{}));
  const auto look = or_throw(graph.stage<Look>({.name = "look"}, Empty{}));
  graph.connect(data.out<&Batch::rows>(), pass.in<0>(), {.to = replicate()});
  graph.connect(pass.out(), look.in<0>(), {.to = replicate(Grad::kReplicated)});
  or_throw(graph.check());
  (void)or_throw(graph.evaluate());
  const auto copied = runtime.status().copied_bytes;
  const auto resident = resident_bytes();
  constexpr int kSteps = 10;
  for (int i = 0; i < kSteps; ++i) (void)or_throw(graph.evaluate());
  const auto more = static_cast<double>(runtime.status().copied_bytes - copied);
  const auto grown = static_cast<double>(std::max<std::int64_t>(resident_bytes() - resident, 0));
  const bool same = or_throw(pass.call<&Pass::data>(5s)).front() == or_throw(look.call<&Look::data>(5s)).front();
  return {with_target({"handover.copied_bytes", more / kSteps, "B", {}, {}, "", {}, "1 GiB, stage to stage"}, Of::kValue, true, 0),
          with_target({"handover.same_data_ptr", same ? 1.0 : 0.0, "bool", {}, {}, "", {}, ""}, Of::kValue, false, 1),
          with_target({"handover.rss_growth", grown, "B", {}, {}, "", {}, "over 10 hand-overs"}, Of::kValue, true, 1 << 20)};
}

}  // namespace bench
