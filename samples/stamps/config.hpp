#pragma once

#include <cstdint>
#include <string>

#include <troupe/base/result.hpp>
#include <troupe/layout/mesh.hpp>

namespace stamps {

/// Everything a run can be told, by file (--config) or flag; flags win.
struct Config {
  std::string data = "/usr/share/tuxpaint/stamps";
  std::string out = "stamps-out";
  std::int64_t steps = 300;
  std::int64_t batch = 32;
  std::int64_t micro_batches = 1;
  std::int64_t seed = 7;
  std::int64_t log_every = 10;       ///< Lines without a terminal.
  std::int64_t save_every = 100;     ///< Steps between checkpoints; 0: none.
  bool resume = false;               ///< Go on from the newest.
  double learning_rate = 1.5e-3;
  std::int64_t width = 192;
  std::int64_t heads = 6;
  std::int64_t layers = 4;
  std::string vision = "dp=1,sp=2";  ///< Mesh of the encoder.
  std::string language = "tp=2";     ///< Mesh of the decoder.
};

/// Reads argv and the file it names.
/// Fails with: kInvalidArgument naming file, key, and what is accepted. `exit_code` >= 0: leave with it at
/// once (--help, or a flag that can't be read: CLI11 has said why).
struct Parsed {
  Config config;
  int exit_code = -1;
};
[[nodiscard]] troupe::Result<Parsed> parse(int argc, char** argv);

}  // namespace stamps
