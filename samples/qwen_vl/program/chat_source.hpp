#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <c10/core/ScalarType.h>

#include "batch.hpp"
#include "prepare.hpp"

namespace qwen_vl {

struct ChatSourceConfig {
  std::string data;             ///< A file of records, or a folder of pictures with captions: see open_data().
  std::string folder;           ///< Of the checkpoint: tokenizer, sizes.
  std::string question;         ///< Asked where a picture has a caption only.
  std::int64_t batch = 8;
  std::int64_t limit = 0;       ///< The first so many records; 0: all.
  std::int64_t max_tokens = 0;  ///< A longer sample is an error that names it; 0: any length.
  std::int64_t seed = 0;        ///< Of the order, which is another in each pass.
  bool once = false;            ///< In order, once through: evaluation.
  c10::ScalarType dtype = c10::ScalarType::Float;
  static auto troupe_fields(auto& self) {
    return std::tie(self.data, self.folder, self.question, self.batch, self.limit, self.max_tokens, self.seed, self.once, self.dtype);
  }
};

/// open_records(), with `question` for captions, and what to do when there is nothing at `path`. Fails with: kIo; kBadData when there is no record.
[[nodiscard]] troupe::Result<std::unique_ptr<RecordSource>> open_data(const std::string& path, const std::string& question);

/// Batches of conversations for training or evaluation, on an actor of its own. Resumable: the state is the number of batches made.
class ChatSource {
 public:
  /// Throws Exception with what opening the data or the folder fails with.
  explicit ChatSource(const ChatSourceConfig& config);

  /// Throws Exception naming the record.
  std::optional<Batch> next();
  [[nodiscard]] std::string state() const { return std::to_string(made_); }
  void restore(const std::string& state);

  /// Records of one pass.
  [[nodiscard]] std::int64_t size() const noexcept { return size_; }

 private:
  [[nodiscard]] std::int64_t record_at(std::int64_t place);

  ChatSourceConfig config_;
  Preparation preparation_;
  std::unique_ptr<RecordSource> records_;
  std::int64_t size_ = 0;
  std::int64_t made_ = 0;
  std::int64_t pass_ = -1;              ///< That order_ is of.
  std::vector<std::int64_t> order_;
};

}  // namespace qwen_vl
