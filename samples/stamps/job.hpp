#pragma once

#include <optional>

#include <troupe/stage/graph.hpp>

#include "config.hpp"
#include "data.hpp"
#include "language.hpp"
#include "source.hpp"
#include "vision.hpp"

namespace stamps {

/// The graph of the program: who computes what, on what, in which layout. Everything parallel is in job.cpp;
/// the modules ask their rank only.
struct Job {
  troupe::Graph graph;
  troupe::Stage<Vision> vision;
  troupe::Stage<Language> language;
  troupe::Source<TrainingSource> training;
  troupe::Source<HeldOutSource> held_out;
};

/// Fails with: kInvalidArgument (mesh, layout), kInfeasible (more ranks than the simulated devices hold), what
/// a constructor threw, what graph.check() found.
[[nodiscard]] troupe::Result<Job> make_job(const Config& config, const Dataset& data);

}  // namespace stamps
