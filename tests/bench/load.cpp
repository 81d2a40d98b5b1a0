// Loading a checkpoint of 2 GB in bfloat16 by four ranks, each its own slices (tp=4) into its parameters.
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <thread>

#include <ATen/ATen.h>
#include <fcntl.h>
#include <unistd.h>

#include <troupe/parallel/parameters.hpp>
#include <troupe/torch/budget.hpp>
#include <troupe/train/tensor_folder.hpp>

#include "rows.hpp"

namespace bench {
namespace {

namespace fs = std::filesystem;
using namespace troupe;

constexpr int kRanks = 4;

/// A decoder of Qwen2.5-VL-3B's widths with as many layers as make 2 GB.
std::vector<ParameterSpec> specs() {
  constexpr std::int64_t kWidth = 2048, kKeyValue = 256, kInner = 11008, kWords = 40'000, kLayers = 12;
  std::vector<ParameterSpec> out;
  const auto add = [&](std::string name, std::vector<std::int64_t> shape, int dim, std::int64_t unit = 1) {
    out.push_back({std::move(name), std::move(shape), {.dim = dim, .axis = dim < 0 ? "" : "tp", .unit = unit}, {}});
  };
  add("embed_tokens.weight", {kWords, kWidth}, 0);
  for (std::int64_t i = 0; i < kLayers; ++i) {
    const std::string layer = "layers." + std::to_string(i) + ".";
    add(layer + "input_layernorm.weight", {kWidth}, -1);
    add(layer + "self_attn.q_proj.weight", {kWidth, kWidth}, 0, 128);
    add(layer + "self_attn.k_proj.weight", {kKeyValue, kWidth}, 0);
    add(layer + "self_attn.v_proj.weight", {kKeyValue, kWidth}, 0);
    add(layer + "self_attn.o_proj.weight", {kWidth, kWidth}, 1, 128);
    add(layer + "mlp.gate_proj.weight", {kInner, kWidth}, 0);
    add(layer + "mlp.up_proj.weight", {kInner, kWidth}, 0);
    add(layer + "mlp.down_proj.weight", {kWidth, kInner}, 1);
  }
  return out;
}

std::int64_t bytes_of(const ParameterSpec& spec) {
  std::int64_t out = 2;
  for (const std::int64_t dim : spec.shape) out *= dim;
  return out;
}

/// The checkpoint, removed with the object.
class Checkpoint {
 public:
  explicit Checkpoint(const std::vector<ParameterSpec>& all) {
    std::string pattern = (fs::temp_directory_path() / "troupe_load_XXXXXX").string();
    if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
    std::map<std::string, TensorFolderWriter::Declared> declared;
    for (const auto& spec : all) declared.emplace(spec.name, TensorFolderWriter::Declared{at::kBFloat16, spec.shape});
    auto writer = or_throw(TensorFolderWriter::create(path_, declared, {.max_shard_bytes = 500'000'000}));
    std::uint64_t state = 1;
    for (const auto& spec : all) {
      const at::Tensor tensor = at::empty(spec.shape, at::kBFloat16);
      auto* at = static_cast<std::uint64_t*>(tensor.mutable_data_ptr());
      for (std::int64_t i = 0; i < bytes_of(spec) / 8; ++i) at[i] = (state = state * 6364136223846793005ULL + 1442695040888963407ULL);
      or_throw(writer.write(spec.name, tensor));
    }
    or_throw(writer.finish());
  }
  ~Checkpoint() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

template <class Run>
double by_threads(Run run) {
  const double start = now();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) threads.emplace_back([&run, rank] { run(rank); });
  for (auto& thread : threads) thread.join();
  return now() - start;
}

struct Loaded {
  double seconds = 0;
  double worst_peak = 0;               ///< Of a rank, over what it keeps.
  std::int64_t fetched = 0;
};

/// On each rank: the parameters exist, their parts are read into them one after the other.
Loaded load(const std::string& folder, const std::vector<ParameterSpec>& all) {
  const Mesh mesh{{"tp", kRanks}};
  const DeviceBudgets budgets;
  const auto files = or_throw(TensorFolder::open(folder));
  std::vector<std::shared_ptr<BudgetAccount>> accounts;
  std::vector<std::vector<at::Tensor>> kept(kRanks);
  std::vector<std::int64_t> shard_bytes(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) accounts.push_back(budgets.account("rank " + std::to_string(rank), 0));
  Loaded out;
  out.seconds = by_threads([&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    const BudgetScope scope(accounts[r]);
    for (const auto& spec : all) {
      std::vector<std::int64_t> shape = spec.shape;
      const auto ranges = or_throw(shard_ranges(spec, mesh, rank));
      if (spec.shard.dim >= 0) {
        std::int64_t& size = shape[static_cast<std::size_t>(spec.shard.dim)];
        size = 0;
        for (const Share& range : ranges) size += range.size;
      }
      kept[r].push_back(at::empty(shape, at::kBFloat16));
      shard_bytes[r] += static_cast<std::int64_t>(kept[r].back().nbytes());
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto ranges = or_throw(shard_ranges(all[i], mesh, rank));
      or_throw(files->read_into(all[i].name, {all[i].shard.dim, ranges}, kept[r][i]));
    }
  });
  for (std::size_t r = 0; r < kRanks; ++r) out.worst_peak = std::max(out.worst_peak, static_cast<double>(accounts[r]->peak()) / static_cast<double>(shard_bytes[r]));
  out.fetched = files->bytes_fetched();
  return out;
}

/// The same bytes as fast as the machine gives them: each thread a quarter of each file, one block after the other.
double read_plainly(const std::string& folder) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder)) paths.push_back(entry.path());
  return by_threads([&](int rank) {
    for (const auto& path : paths) {
      const Share mine = share_of(static_cast<std::int64_t>(fs::file_size(path)), kRanks, rank);
      const at::Tensor to = at::empty({mine.size}, at::kByte);
      const int file = ::open(path.c_str(), O_RDONLY);
      std::int64_t at = 0;
      while (at < mine.size) {
        const auto got = ::pread(file, static_cast<char*>(to.mutable_data_ptr()) + at, static_cast<std::size_t>(mine.size - at), mine.begin + at);
        if (got <= 0) std::abort();
        at += got;
      }
      ::close(file);
    }
  });
}

/// Whether the ranges of all ranks cover each sharded tensor exactly once.
bool is_partition(const std::vector<ParameterSpec>& all) {
  const Mesh mesh{{"tp", kRanks}};
  for (const auto& spec : all) {
    if (spec.shard.dim < 0) continue;
    std::vector<int> taken(static_cast<std::size_t>(spec.shape[static_cast<std::size_t>(spec.shard.dim)]));
    for (int rank = 0; rank < kRanks; ++rank) {
      for (const Share& range : or_throw(shard_ranges(spec, mesh, rank))) {
        for (std::int64_t row = range.begin; row < range.end(); ++row) ++taken[static_cast<std::size_t>(row)];
      }
    }
    for (const int count : taken) {
      if (count != 1) return false;
    }
  }
  return true;
}

}  // namespace

std::vector<Row> load() {
  const auto all = specs();
  std::int64_t total = 0, needed = 0;
  for (const auto& spec : all) {
    total += bytes_of(spec);
    needed += bytes_of(spec) * (spec.shard.dim < 0 ? kRanks : 1);   // replicated: by each rank
  }
  Row seconds{.name = "qwen.load", .unit = "s"}, peak{.name = "qwen.load.peak"}, again{.name = "qwen.load.read_again", .unit = "B"};
  if (fs::space(fs::temp_directory_path()).available < static_cast<std::uintmax_t>(3) * 1024 * 1024 * 1024) {
    for (Row* row : {&seconds, &peak, &again}) row->reason = "less than 3 GiB free in " + fs::temp_directory_path().string() + " (TMPDIR)";
    return {seconds, peak, again};
  }
  const Checkpoint checkpoint(all);
  Loaded worst;
  seconds = paired("qwen.load", "s", 5, [&] {
    const Loaded one = load(checkpoint.path(), all);
    worst.worst_peak = std::max(worst.worst_peak, one.worst_peak);
    worst.fetched = std::max(worst.fetched, one.fetched);
    return one.seconds;
  }, [&] { return read_plainly(checkpoint.path()); });
  char rate[96];
  std::snprintf(rate, sizeof rate, "%.2f GB, %.2f GB/s from the page cache; baseline: the same bytes read plainly; ", 1e-9 * static_cast<double>(total), 1e-9 * static_cast<double>(total) / *seconds.value);
  seconds.reason = rate + seconds.reason;
  peak.value = worst.worst_peak;
  peak.reason = "largest of a rank's peak over the parameters it keeps";
  again.value = static_cast<double>(worst.fetched - needed);
  again.reason = is_partition(all) ? "bytes of sharded tensors that more than one rank read" : "the ranges are no partition";
  if (!is_partition(all)) again.value.reset();
  return {seconds, with_target(std::move(peak), Of::kValue, true, 1.1), with_target(std::move(again), Of::kValue, true, 0)};
}

}  // namespace bench
