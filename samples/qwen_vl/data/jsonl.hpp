#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "file_bytes.hpp"
#include "record_index.hpp"
#include "records.hpp"

namespace qwen_vl {

/// A file of records, of which only the index is in memory.
class RecordFile final : public RecordSource {
 public:
  /// Reads the file once for the index.
  /// Fails with: kIo; kBadData, as RecordIndex.
  [[nodiscard]] static troupe::Result<RecordFile> open(const std::string& path, const RecordOptions& options = {});
  [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(places_.size()); }
  [[nodiscard]] troupe::Result<Record> read(std::int64_t number) const override;

 private:
  RecordFile(FileBytes file, std::vector<RecordPlace> places, RecordOptions options)
      : file_(std::move(file)), places_(std::move(places)), options_(std::move(options)) {}
  FileBytes file_;
  std::vector<RecordPlace> places_;
  RecordOptions options_;
};

/// Every record of a file at once, for small ones.
/// Fails with: as RecordFile.
[[nodiscard]] troupe::Result<std::vector<Record>> read_jsonl(const std::string& path, const RecordOptions& options = {});

}  // namespace qwen_vl
