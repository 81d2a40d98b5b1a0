#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <troupe/base/result.hpp>
#include <troupe/train/report.hpp>

#include "config.hpp"

namespace stamps {

struct HeldOut {
  double with_pictures = 0;
  double shuffled = 0;
  double without = 0;
  double unigram = 0;
};

struct Captioned {
  std::string picture;
  std::string truth;
  std::string generated;
  bool seen = false;
  bool known = false;   ///< Whether the model has every word of the truth.
  std::string thumbnail = {};          ///< The picture as the model gets it, a PNG file.
};

struct Outcome {
  std::vector<double> losses;          ///< By step.
  std::vector<double> patches_per_second = {};
  double seconds = 0;                  ///< Of training.
  std::int64_t patches = 0;            ///< Trained on, in all.
  std::int64_t tokens = 0;
  std::map<std::string, std::vector<std::int64_t>> peak_bytes;  ///< By stage, per rank.
  std::vector<troupe::ReportStage> stages = {};   ///< What runs where.
  struct Handover {
    std::int64_t referenced = 0;
    std::int64_t copied = 0;
  };
  std::map<std::string, Handover> bytes_by_edge;  ///< Of the last step.
  std::optional<HeldOut> held_out;     ///< Unless stopped before.
  std::vector<Captioned> captions;
  bool stopped = false;

  [[nodiscard]] double per_second(std::int64_t count) const { return seconds > 0 ? static_cast<double>(count) / seconds : 0; }
};

/// Writes results.json, loss.svg and report.html into config.out, each whole or not at all (temporary file, rename).
/// Fails with: kIo naming the file.
[[nodiscard]] troupe::Result<void> write_reports(const Config& config, const Outcome& outcome);

}  // namespace stamps
