#pragma once

#include <stop_token>

#include <troupe/base/result.hpp>

#include "config.hpp"
#include "report.hpp"

namespace stamps {

/// The whole job: data, graph, training, held-out losses, captions. Prints progress on stdout. A stop ends it
/// after the step under way; the outcome says so and holds what there is.
/// Fails with what the library or the data fails with.
[[nodiscard]] troupe::Result<Outcome> train(const Config& config, std::stop_token stop);

}  // namespace stamps
