#pragma once

#include <string>
#include <vector>

#include <troupe/stage/graph.hpp>

#include "data.hpp"
#include "language.hpp"
#include "report.hpp"
#include "source.hpp"
#include "vision.hpp"

namespace stamps {

/// Greedy captions for the batch that `source` makes next, over both stages in their own layouts.
[[nodiscard]] troupe::Result<std::vector<std::string>> caption(troupe::Graph& graph, const troupe::Source<StampSource>& source,
                                                               const troupe::Stage<Vision>& vision, const troupe::Stage<Language>& language,
                                                               const std::vector<std::string>& words);

}  // namespace stamps
