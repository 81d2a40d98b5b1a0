#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "records.hpp"

namespace qwen_vl {

/// Pictures below a folder with captions beside them (car.png, car.txt), like Tux Paint's stamps, each asked about by options.caption_prompt.
/// A name_mirror.png without a caption has its original's, which is Tux Paint's rule. Pictures without a caption in options.caption_language are left out.
class CaptionFolder final : public RecordSource {
 public:
  /// Reads the names and captions, no picture. In order of the paths, which is the same on every machine.
  /// Fails with: kIo; kBadData naming a caption that is no UTF-8, and for a folder without captions.
  [[nodiscard]] static troupe::Result<CaptionFolder> open(const std::string& folder, const RecordOptions& options = {});
  [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(all_.size()); }
  [[nodiscard]] troupe::Result<Record> read(std::int64_t number) const override;
  /// Pictures left out.
  [[nodiscard]] std::int64_t without_caption() const noexcept { return without_caption_; }

 private:
  struct Captioned {
    std::string picture;   ///< Path.
    std::string id;        ///< Path below the folder, without its extension.
    std::string caption;
  };
  CaptionFolder(std::string folder, std::string prompt) : folder_(std::move(folder)), prompt_(std::move(prompt)) {}

  std::string folder_;
  std::string prompt_;
  std::vector<Captioned> all_;
  std::int64_t without_caption_ = 0;
};

}  // namespace qwen_vl
