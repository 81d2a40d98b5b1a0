#pragma once

#include <string>
#include <utility>
#include <vector>

#include <troupe/base/result.hpp>

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
};

struct Outcome {
  std::vector<double> losses;          ///< By step.
  double seconds = 0;                  ///< Of training.
  double patches_per_second = 0;
  double tokens_per_second = 0;
  HeldOut held_out;
  std::vector<Captioned> captions;
  bool stopped = false;
};

/// Writes results.json and loss.svg into config.out, each whole or not at all (temporary file, rename).
/// Fails with: kIo naming the file.
[[nodiscard]] troupe::Result<void> write_reports(const Config& config, const Outcome& outcome);

/// The loss curve as an SVG: raw and smoothed, with axes.
[[nodiscard]] std::string loss_svg(const std::vector<double>& losses, double unigram);

}  // namespace stamps
