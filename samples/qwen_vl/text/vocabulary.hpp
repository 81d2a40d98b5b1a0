#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <troupe/base/result.hpp>

#include "tokenizer.hpp"

namespace qwen_vl {

struct VocabularyOptions {
  std::int64_t size = 1024;        ///< Tokens wanted: 256 bytes, merges, then the added ones.
  std::vector<AddedToken> added = qwen_added_tokens();   ///< Behind the merges, in this order; their ids are given here.
  Split split = Split::kQwen2;
  std::int64_t least_count = 2;    ///< A pair seen less often than this is not worth a token.
};

/// Learns a byte-level BPE vocabulary from `lines`, for runs whose vocabulary should be small. The same lines and options give the same tokenizer:
/// the most frequent pair becomes a token, of equals the one with the lower left id, then the lower right one. Added tokens in a line are left out.
/// The result is smaller than wanted when no pair is left that is frequent enough.
/// Fails with: kInvalidArgument when `size` has no room for the bytes and the added tokens, or an added token can't be one.
/// Source: Sennrich et al. 2016, arXiv 1508.07909.
[[nodiscard]] troupe::Result<Tokenizer> train_vocabulary(std::span<const std::string> lines, const VocabularyOptions& options = {});

}  // namespace qwen_vl
