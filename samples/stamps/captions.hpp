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

/// Greedy captions for the pictures of a batch: the encoder runs in its layout, its output comes
/// to the driver, the decoder makes one token a call in its own.
[[nodiscard]] troupe::Result<std::vector<std::string>> caption(troupe::Graph& graph, const troupe::GlobalBatch<Batch>& batch,
                                                               const troupe::Stage<Vision>& vision, const troupe::Stage<Language>& language,
                                                               const std::vector<std::string>& words);

}  // namespace stamps
