#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "batch.hpp"
#include "chat.hpp"
#include "config.hpp"
#include "processor.hpp"
#include "records.hpp"
#include "tokenizer.hpp"

namespace qwen_vl {

/// What turns words and pictures into the model's inputs: of one checkpoint folder.
struct Preparation {
  Tokenizer tokenizer;
  ProcessorConfig pictures;
  ModelConfig model;
};

/// Reads config.json, the tokenizer's files and preprocessor_config.json of a checkpoint folder.
/// Fails with: what the files have wrong; kMismatch when they do not fit each other (patch and merge sizes, ids of special tokens, vocabulary), naming both.
[[nodiscard]] troupe::Result<Preparation> read_preparation(const std::string& folder);
[[nodiscard]] troupe::Result<void> check(const Preparation& preparation, const std::string& folder);

/// Writes the same files: what save_checkpoint() leaves out.
[[nodiscard]] troupe::Result<void> write_preparation(const Preparation& preparation, const std::string& folder);

/// One conversation as tokens and patches.
struct Sample {
  std::vector<std::int64_t> ids, labels;
  std::vector<Patches> images, videos;
  std::vector<double> seconds;   ///< By video: per grid step in time.
};

/// Decodes and cuts the pictures, renders the chat. Fails with: as the pictures, the chat and the files; names the record.
[[nodiscard]] troupe::Result<Sample> prepare(const Record& record, const Preparation& preparation, const ChatOptions& options = {});

/// Samples of different length as one batch, padded at the right.
[[nodiscard]] RawBatch collate(const std::vector<Sample>& samples, const Preparation& preparation);

}  // namespace qwen_vl
